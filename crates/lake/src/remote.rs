//! Object stores: `s3://`, `gs://`, `az://`, `abfs://`, `abfss://`. Patience is bounded, and errors say what to do.

use comporta_engine::{Error, ErrorKind, Result};
use futures::TryStreamExt;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::path::Path as Key;
use object_store::{
    BackoffConfig, ClientConfigKey, GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt, RetryConfig,
};
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;
use tempfile::NamedTempFile;

/// Bytes asked for at once. Each request has its own time limit, so that a large object over a slow line is
/// many requests in time instead of one that is late.
const PART_BYTES: u64 = 8 << 20;

/// How long a store may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Until a connection stands.
    pub connect: Duration,
    /// Until one request is answered in full.
    pub request: Duration,
    /// From the first try of a request until no further one is made.
    pub retry: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Patience {
            connect: Duration::from_secs(5),
            request: Duration::from_secs(20),
            retry: Duration::from_secs(10),
        }
    }
}

/// A bucket or container.
#[derive(Debug, Clone)]
pub struct Bucket {
    store: Arc<dyn ObjectStore>,
    /// `s3://bucket`
    root: String,
}

/// Whether a place is in an object store.
pub fn is_remote(place: &str) -> bool {
    split(place).is_some()
}

/// A place as bucket (`s3://bucket`) and key. The key is as written: it may be a glob.
pub fn split(place: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = place.split_once("://")?;
    if !matches!(scheme, "s3" | "s3a" | "gs" | "az" | "abfs" | "abfss") {
        return None;
    }
    match rest.find('/') {
        Some(slash) => Some((&place[..scheme.len() + 3 + slash], &rest[slash + 1..])),
        None => Some((place, "")),
    }
}

impl Bucket {
    /// The bucket of a place, with the credentials of the process's environment (`AWS_…`, `GOOGLE_…`, `AZURE_…`).
    ///
    /// # Errors
    /// The place names no bucket, or the environment cannot be understood.
    pub fn open(place: &str) -> Result<Self> {
        let environment = std::env::vars_os().filter_map(|(name, value)| {
            let name = name.into_string().ok()?;
            let known = ["AWS_", "GOOGLE_", "AZURE_"]
                .iter()
                .any(|start| name.starts_with(start));
            Some((name, value.into_string().ok()?)).filter(|_| known)
        });
        Self::open_with(place, &environment.collect::<Vec<_>>(), Patience::default())
    }

    /// The bucket of a place, with the environment and the patience given.
    ///
    /// # Errors
    /// The place names no bucket, or the environment cannot be understood.
    pub fn open_with(place: &str, environment: &[(String, String)], patience: Patience) -> Result<Self> {
        let (root, _) = split(place).ok_or_else(|| {
            Error::invalid(format!("`{place}` is no place in an object store"))
                .hint("write `s3://bucket/key`, `gs://bucket/key` or `az://container/key`")
        })?;
        if root.ends_with("://") {
            return Err(Error::invalid(format!("`{place}` names no bucket")).hint("write `s3://bucket/key`"));
        }
        let store = match root.split("://").next() {
            Some("gs") => google(root, environment, patience),
            Some("s3" | "s3a") => amazon(root, environment, patience),
            _ => azure(root, environment, patience),
        };
        // What the builder says may quote a setting, and a setting may be a secret.
        let store = store.map_err(|error| {
            let missing = error.to_string().to_lowercase().contains("missing");
            let what = if missing {
                "is not complete"
            } else {
                "cannot be understood"
            };
            Error::new(ErrorKind::Refused, format!("the environment for `{root}` {what}")).hint(variables(root))
        })?;
        Ok(Bucket {
            store,
            root: root.to_string(),
        })
    }

    /// The store, for readers and writers of its own kind.
    pub fn store(&self) -> &Arc<dyn ObjectStore> {
        &self.store
    }

    /// Size, time and tag of an object.
    ///
    /// # Errors
    /// It does not exist, may not be read, or the store does not answer.
    pub async fn head(&self, key: &str) -> Result<ObjectMeta> {
        let key = self.key(key)?;
        match self.store.head(&key).await {
            Ok(meta) => Ok(meta),
            Err(error @ object_store::Error::NotFound { .. }) => {
                // An answer to this question has no body: whether the bucket or the key is missing shows in
                // another one.
                let found = match self.store.list(Some(&key)).try_next().await {
                    Err(other) => self.explain(key.as_ref(), &other),
                    Ok(_) => self.explain(key.as_ref(), &error),
                };
                Err(found)
            }
            Err(error) => Err(self.explain(key.as_ref(), &error)),
        }
    }

    /// The objects below a prefix, by key.
    ///
    /// # Errors
    /// The bucket does not exist, may not be read, or the store does not answer.
    pub async fn list(&self, prefix: &str) -> Result<Vec<ObjectMeta>> {
        let key = self.key(prefix)?;
        let listed = self.store.list(Some(&key)).try_collect::<Vec<_>>().await;
        let mut found = listed.map_err(|error| self.explain(prefix, &error))?;
        found.sort_by(|a, b| a.location.cmp(&b.location));
        Ok(found)
    }

    /// Copies an object to a temporary file, part by part, all of one version of it.
    ///
    /// # Errors
    /// It may not be read, changed meanwhile, the store does not answer, or the disk is full.
    pub async fn fetch(&self, object: &ObjectMeta) -> Result<NamedTempFile> {
        let mut file = NamedTempFile::new()?;
        let mut at = 0;
        while at < object.size {
            let end = object.size.min(at + PART_BYTES);
            let options = GetOptions {
                range: Some(GetRange::Bounded(at..end)),
                if_match: object.e_tag.clone(),
                ..GetOptions::default()
            };
            let part = async { self.store.get_opts(&object.location, options).await?.bytes().await };
            let bytes = part
                .await
                .map_err(|error| self.explain(object.location.as_ref(), &error))?;
            if bytes.len() as u64 != end - at {
                return Err(self.changed(object.location.as_ref()));
            }
            file.write_all(&bytes)?;
            at = end;
        }
        file.flush()?;
        Ok(file)
    }

    fn key(&self, key: &str) -> Result<Key> {
        Key::parse(key.trim_matches('/'))
            .map_err(|_| Error::invalid(format!("`{}/{key}` is no key of an object store", self.root)))
    }

    fn changed(&self, key: &str) -> Error {
        Error::new(
            ErrorKind::Conflict,
            format!("`{}/{key}` changed while it was read", self.root),
        )
        .hint("run again when its writer is done")
    }

    /// What an error of the store means for somebody who asked for a key. The store's own words are left out:
    /// they hold signatures and key ids.
    pub fn explain(&self, key: &str, error: &object_store::Error) -> Error {
        use object_store::Error as Store;
        let place = format!("{}/{key}", self.root);
        let words = whole(error);
        let has = |parts: &[&str]| parts.iter().any(|part| words.contains(part));
        if has(&["NoSuchBucket", "ContainerNotFound", "bucket does not exist"]) {
            return Error::new(ErrorKind::NotFound, format!("there is no bucket `{}`", self.root))
                .hint("check its name, and the endpoint and region of the environment");
        }
        if matches!(error, Store::PermissionDenied { .. } | Store::Unauthenticated { .. })
            || has(&[
                "SignatureDoesNotMatch",
                "InvalidAccessKeyId",
                "NotSignedUp",
                "AccessDenied",
                "403 Forbidden",
            ])
        {
            return Error::new(
                ErrorKind::Refused,
                format!("`{place}` may not be read with these credentials"),
            )
            .hint(variables(&self.root));
        }
        match error {
            Store::NotFound { .. } => Error::new(ErrorKind::NotFound, format!("there is no `{place}`"))
                .hint("check the key; names are case-sensitive"),
            Store::Precondition { .. } | Store::NotModified { .. } => self.changed(key),
            Store::AlreadyExists { .. } => Error::new(ErrorKind::Conflict, format!("`{place}` exists already")),
            Store::InvalidPath { .. } => Error::invalid(format!("`{place}` is no key of an object store")),
            Store::NotSupported { .. } | Store::NotImplemented { .. } => {
                Error::invalid(format!("the store of `{place}` cannot do this"))
            }
            _ if has(&["169.254.169.254", "metadata"]) => Error::new(
                ErrorKind::Refused,
                format!("there are no credentials for `{}`", self.root),
            )
            .hint(variables(&self.root)),
            _ => Error::new(
                ErrorKind::Unavailable,
                format!("the store of `{place}` did not answer in time"),
            )
            .hint("check the endpoint and the network, or run again later"),
        }
    }
}

/// An error with all its causes, to recognise it by.
fn whole(error: &object_store::Error) -> String {
    let mut words = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        words.push_str(&format!("; {inner}"));
        cause = inner.source();
    }
    words
}

fn variables(root: &str) -> &'static str {
    match root.split("://").next() {
        Some("gs") => "set GOOGLE_SERVICE_ACCOUNT or GOOGLE_SERVICE_ACCOUNT_KEY",
        Some("s3" | "s3a") => {
            "set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION (AWS_SKIP_SIGNATURE=true for public buckets)"
        }
        _ => "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, or AZURE_STORAGE_SAS_KEY",
    }
}

fn retries(patience: Patience) -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(2),
            base: 2.0,
        },
        max_retries: 5,
        retry_timeout: patience.retry,
    }
}

/// Time limits as settings, before those of the environment, which win.
fn limits(patience: Patience) -> [(ClientConfigKey, String); 2] {
    [
        (ClientConfigKey::Timeout, format!("{} ms", patience.request.as_millis())),
        (
            ClientConfigKey::ConnectTimeout,
            format!("{} ms", patience.connect.as_millis()),
        ),
    ]
}

type Built = object_store::Result<Arc<dyn ObjectStore>>;

fn amazon(root: &str, environment: &[(String, String)], patience: Patience) -> Built {
    let mut builder = AmazonS3Builder::new().with_url(root).with_retry(retries(patience));
    for (key, value) in limits(patience) {
        builder = builder.with_config(AmazonS3ConfigKey::Client(key), value);
    }
    for (name, value) in environment {
        if let Ok(key) = name.to_ascii_lowercase().parse() {
            builder = builder.with_config(key, value);
        }
    }
    Ok(Arc::new(builder.build()?))
}

fn google(root: &str, environment: &[(String, String)], patience: Patience) -> Built {
    let mut builder = GoogleCloudStorageBuilder::new()
        .with_url(root)
        .with_retry(retries(patience));
    for (key, value) in limits(patience) {
        builder = builder.with_config(GoogleConfigKey::Client(key), value);
    }
    for (name, value) in environment {
        if let Ok(key) = name.to_ascii_lowercase().parse() {
            builder = builder.with_config(key, value);
        }
    }
    Ok(Arc::new(builder.build()?))
}

fn azure(root: &str, environment: &[(String, String)], patience: Patience) -> Built {
    let mut builder = MicrosoftAzureBuilder::new()
        .with_url(root)
        .with_retry(retries(patience));
    for (key, value) in limits(patience) {
        builder = builder.with_config(AzureConfigKey::Client(key), value);
    }
    for (name, value) in environment {
        if let Ok(key) = name.to_ascii_lowercase().parse() {
            builder = builder.with_config(key, value);
        }
    }
    Ok(Arc::new(builder.build()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use comporta_testkit::s3::{ACCESS_KEY, S3Server, SECRET_KEY};
    use std::path::Path;

    fn lake() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("lake/orders")).unwrap();
        std::fs::write(folder.path().join("lake/orders/b.csv"), "id\n2\n").unwrap();
        std::fs::write(folder.path().join("lake/orders/a.csv"), "id\n1\n").unwrap();
        folder
    }

    async fn server(folder: &Path) -> S3Server {
        S3Server::start(folder, Duration::ZERO).await.unwrap()
    }

    fn hasty() -> Patience {
        let limit = Duration::from_millis(400);
        Patience {
            connect: limit,
            request: limit,
            retry: Duration::from_secs(1),
        }
    }

    #[test]
    fn places_split_into_bucket_and_key() {
        assert_eq!(split("s3://lake/a/*.csv"), Some(("s3://lake", "a/*.csv")));
        assert_eq!(split("gs://lake"), Some(("gs://lake", "")));
        assert_eq!(
            split("abfss://box@account.host/a"),
            Some(("abfss://box@account.host", "a"))
        );
        assert_eq!(split("ftp://lake/a"), None);
        assert_eq!(split("data/a.csv"), None);
        assert_eq!(
            Bucket::open_with("s3:///a", &[], hasty()).unwrap_err().kind,
            ErrorKind::Invalid
        );
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn objects_are_listed_by_key_and_fetched() {
        let folder = lake();
        let server = server(folder.path()).await;
        let bucket = Bucket::open_with("s3://lake/orders", &server.environment(), Patience::default()).unwrap();
        let found = bucket.list("orders").await.unwrap();
        let keys: Vec<&str> = found.iter().map(|object| object.location.as_ref()).collect();
        assert_eq!(keys, ["orders/a.csv", "orders/b.csv"]);
        let copy = bucket.fetch(&found[1]).await.unwrap();
        assert_eq!(std::fs::read_to_string(copy.path()).unwrap(), "id\n2\n");
        assert_eq!(bucket.head("orders/a.csv").await.unwrap().size, 5);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn an_object_of_several_parts_arrives_whole() {
        let folder = lake();
        let large: Vec<u8> = (0..PART_BYTES + 1000).map(|at| (at % 251) as u8).collect();
        std::fs::write(folder.path().join("lake/large.bin"), &large).unwrap();
        let server = server(folder.path()).await;
        let bucket = Bucket::open_with("s3://lake", &server.environment(), Patience::default()).unwrap();
        let object = bucket.head("large.bin").await.unwrap();
        let copy = bucket.fetch(&object).await.unwrap();
        assert!(std::fs::read(copy.path()).unwrap() == large);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn wrong_credentials_are_refused_without_showing_them() {
        let folder = lake();
        let server = server(folder.path()).await;
        for (access, secret) in [(ACCESS_KEY, "wrong-and-private"), ("nobody", SECRET_KEY)] {
            let environment = server.environment_with(access, secret);
            let bucket = Bucket::open_with("s3://lake", &environment, hasty()).unwrap();
            let listed = bucket.list("orders").await.unwrap_err();
            let asked = bucket.head("orders/a.csv").await.unwrap_err();
            for error in [listed, asked] {
                assert_eq!(error.kind, ErrorKind::Refused, "{error:?}");
                assert!(!format!("{error:?}").contains(secret), "{error:?}");
            }
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_missing_bucket_and_a_missing_key_are_told_apart() {
        let folder = lake();
        let server = server(folder.path()).await;
        let bucket = Bucket::open_with("s3://pond/orders/a.csv", &server.environment(), hasty()).unwrap();
        let error = bucket.head("orders/a.csv").await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::NotFound, "{error:?}");
        let lake = Bucket::open_with("s3://lake", &server.environment(), hasty()).unwrap();
        let error = lake.head("orders/c.csv").await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::NotFound, "{error:?}");
        assert!(error.message.contains("s3://lake/orders/c.csv"), "{error:?}");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_server_that_is_too_slow_or_absent_is_unavailable_in_bounded_time() {
        let folder = lake();
        let server = S3Server::start(folder.path(), Duration::from_secs(60)).await.unwrap();
        let mut environments = vec![server.environment()];
        let mut absent = server.environment();
        absent[0].1 = "http://127.0.0.1:1".to_string();
        environments.push(absent);
        for environment in environments {
            let begun = std::time::Instant::now();
            let bucket = Bucket::open_with("s3://lake", &environment, hasty()).unwrap();
            let error = bucket.list("orders").await.unwrap_err();
            assert_eq!(error.kind, ErrorKind::Unavailable, "{error:?}");
            assert!(begun.elapsed() < Duration::from_secs(10));
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn an_object_that_shrank_while_it_is_read_is_a_conflict() {
        let folder = lake();
        let server = server(folder.path()).await;
        let bucket = Bucket::open_with("s3://lake", &server.environment(), hasty()).unwrap();
        let mut object = bucket.head("orders/a.csv").await.unwrap();
        object.size = 100;
        let error = bucket.fetch(&object).await.unwrap_err();
        assert!(
            matches!(error.kind, ErrorKind::Conflict | ErrorKind::Unavailable),
            "{error:?}"
        );
    }
}
