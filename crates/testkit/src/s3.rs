//! A real S3 server inside the test, over a folder: buckets are its folders.

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use s3s_fs::FileSystem;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// The access key that the server knows.
pub const ACCESS_KEY: &str = "tester";
/// The secret that belongs to it.
pub const SECRET_KEY: &str = "a-secret-nobody-may-print";

/// A server on a free local port, which ends when this is dropped.
#[derive(Debug)]
pub struct S3Server {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl S3Server {
    /// Serves the folder. Every answer waits for `delay` first: the slow server of a bad day.
    ///
    /// # Errors
    /// The folder does not exist, or no port is free.
    pub async fn start(folder: &Path, delay: Duration) -> std::io::Result<Self> {
        let files = FileSystem::new(folder).map_err(|error| std::io::Error::other(format!("{error:?}")))?;
        let mut service = S3ServiceBuilder::new(files);
        service.set_auth(SimpleAuth::from_single(ACCESS_KEY, SECRET_KEY));
        let service = service.build();
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let task = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let service = service.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(delay).await;
                    let server = Builder::new(TokioExecutor::new());
                    // A client that hangs up is part of what is tested.
                    let _ = server.serve_connection(TokioIo::new(socket), service).await;
                });
            }
        });
        Ok(S3Server { address, task })
    }

    /// Where it listens, as clients want it.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The environment of a client that may read and write.
    pub fn environment(&self) -> Vec<(String, String)> {
        self.environment_with(ACCESS_KEY, SECRET_KEY)
    }

    /// The environment of a client with other credentials.
    pub fn environment_with(&self, access_key: &str, secret_key: &str) -> Vec<(String, String)> {
        [
            ("AWS_ENDPOINT", self.endpoint().as_str()),
            ("AWS_ALLOW_HTTP", "true"),
            ("AWS_REGION", "us-east-1"),
            ("AWS_ACCESS_KEY_ID", access_key),
            ("AWS_SECRET_ACCESS_KEY", secret_key),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .collect()
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}
