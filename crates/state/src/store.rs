//! Runs in an embedded database.

use chrono::{DateTime, SecondsFormat, Utc};
use comporta_contract::Report;
use comporta_engine::world::Unfinished;
use comporta_engine::{Error, ErrorKind, Result, RunIntent, RunStore};
use futures::future::BoxFuture;
use serde::Serialize;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteRow, SqliteSynchronous,
};
use sqlx::{Connection, Row};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How the tables came to be, one text per version of the schema.
const MIGRATIONS: &[&str] = &[include_str!("schema/1.sql")];
/// How long to wait for another process that is writing.
const BUSY: Duration = Duration::from_secs(30);

/// Runs in an SQLite file.
#[derive(Debug, Clone)]
pub struct SqliteStore {
    pool: SqlitePool,
    path: PathBuf,
}

/// How far a run came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// It began, and has not ended or was killed.
    Running,
    /// It ended with a report.
    Finished,
    /// It ended without one.
    Failed,
}

/// One line of history.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunSummary {
    /// The run.
    pub run_id: String,
    /// Its pipeline.
    pub pipeline: String,
    /// Its unit, or `all`.
    pub unit: String,
    /// How far it came.
    pub state: RunState,
    /// When it began, UTC.
    pub started_at: String,
    /// When it ended, UTC.
    pub ended_at: Option<String>,
    /// What the gate decided, as in the report.
    pub decision: Option<String>,
    /// Rows of the source.
    pub rows_read: Option<u64>,
    /// Rows made visible.
    pub rows_published: Option<u64>,
    /// Rows set aside.
    pub rows_quarantined: Option<u64>,
    /// Valid rows by rows read.
    pub score: Option<f64>,
    /// Why it failed.
    pub error: Option<String>,
}

impl SqliteStore {
    /// Opens the database, making it and its folder if need be.
    ///
    /// # Errors
    /// `Refused` if it cannot be written to, `Corrupt` if it is no database, `Invalid` if a newer version of
    /// comporta wrote it.
    pub async fn open(path: &Path) -> Result<Self> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(|error| {
                Error::from(error).context(format_args!("making the folder `{}`", folder.display()))
            })?;
        }
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // What was recorded before a commit must outlast a loss of power.
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(BUSY);
        let pool = SqlitePoolOptions::new()
            .max_connections(1)
            .acquire_timeout(BUSY * 2)
            .connect_with(options)
            .await
            .map_err(|error| database_error(path, &error))?;
        let store = SqliteStore {
            pool,
            path: path.to_path_buf(),
        };
        store.migrate().await?;
        Ok(store)
    }

    async fn migrate(&self) -> Result<()> {
        let failed = |error: sqlx::Error| database_error(&self.path, &error);
        let mut connection = self.pool.acquire().await.map_err(failed)?;
        // Another process may be making the tables: only the one that holds the lock looks and writes.
        let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await.map_err(failed)?;
        let row = sqlx::query("PRAGMA user_version")
            .fetch_one(&mut *transaction)
            .await
            .map_err(failed)?;
        let version = usize::try_from(row.get::<i64, _>(0)).unwrap_or(usize::MAX);
        if version > MIGRATIONS.len() {
            let message = format!("`{}` was written by a newer version of comporta", self.path.display());
            return Err(Error::invalid(message).hint("update comporta, or name another state database"));
        }
        for migration in MIGRATIONS.iter().skip(version) {
            sqlx::raw_sql(*migration)
                .execute(&mut *transaction)
                .await
                .map_err(failed)?;
        }
        if version < MIGRATIONS.len() {
            let set = format!("PRAGMA user_version = {}", MIGRATIONS.len());
            sqlx::raw_sql(sqlx::AssertSqlSafe(set))
                .execute(&mut *transaction)
                .await
                .map_err(failed)?;
        }
        transaction.commit().await.map_err(failed)
    }

    /// The newest runs first, of one pipeline or of all.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn history(&self, limit: u32, pipeline: Option<&str>) -> Result<Vec<RunSummary>> {
        let rows = sqlx::query("SELECT * FROM runs WHERE ?1 IS NULL OR pipeline = ?1 ORDER BY sequence DESC LIMIT ?2")
            .bind(pipeline)
            .bind(i64::from(limit))
            .fetch_all(&self.pool)
            .await
            .map_err(|error| self.error(&error))?;
        rows.iter()
            .map(|row| summary(row).map_err(|error| self.error(&error)))
            .collect()
    }

    /// The report of a run, if the run is known and has one.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn report(&self, run_id: &str) -> Result<Option<Report>> {
        let row = sqlx::query("SELECT report FROM runs WHERE run_id = ?1 AND state = 'finished'")
            .bind(run_id)
            .fetch_optional(&self.pool)
            .await
            .map_err(|error| self.error(&error))?;
        match row {
            Some(row) => self.read_report(row.try_get("report").map_err(|error| self.error(&error))?),
            None => Ok(None),
        }
    }

    fn read_report(&self, text: Option<String>) -> Result<Option<Report>> {
        let read = |text: String| {
            serde_json::from_str(&text).map_err(|error| {
                let message = format!("a report in `{}` cannot be read: {error}", self.path.display());
                Error::new(ErrorKind::Corrupt, message)
            })
        };
        text.map(read).transpose()
    }

    fn error(&self, error: &sqlx::Error) -> Error {
        database_error(&self.path, error)
    }

    async fn find_unfinished(&self, pipeline: &str, unit: &str) -> Result<Option<Unfinished>> {
        let row = sqlx::query(
            "SELECT * FROM runs WHERE pipeline = ?1 AND unit = ?2 AND state = 'running' ORDER BY sequence DESC LIMIT 1",
        )
        .bind(pipeline)
        .bind(unit)
        .fetch_optional(&self.pool)
        .await
        .map_err(|error| self.error(&error))?;
        let Some(row) = row else { return Ok(None) };
        let text = |name: &str| row.try_get::<String, _>(name).map_err(|error| self.error(&error));
        let started = text("started_at")?;
        let started_at = DateTime::parse_from_rfc3339(&started)
            .map_err(|error| {
                let message = format!(
                    "the time `{started}` in `{}` cannot be read: {error}",
                    self.path.display()
                );
                Error::new(ErrorKind::Corrupt, message)
            })?
            .with_timezone(&Utc);
        Ok(Some(Unfinished {
            intent: RunIntent {
                run_id: text("run_id")?,
                pipeline: text("pipeline")?,
                unit: text("unit")?,
                fingerprint: text("fingerprint")?,
                rules_digest: text("rules_digest")?,
                started_at,
            },
            report: self.read_report(row.try_get("report").map_err(|error| self.error(&error))?)?,
        }))
    }

    async fn insert(&self, intent: &RunIntent) -> Result<()> {
        sqlx::query(
            "INSERT INTO runs (run_id, pipeline, unit, state, fingerprint, rules_digest, started_at)
             VALUES (?1, ?2, ?3, 'running', ?4, ?5, ?6)",
        )
        .bind(&intent.run_id)
        .bind(&intent.pipeline)
        .bind(&intent.unit)
        .bind(&intent.fingerprint)
        .bind(&intent.rules_digest)
        .bind(intent.started_at.to_rfc3339_opts(SecondsFormat::Nanos, true))
        .execute(&self.pool)
        .await
        .map(drop)
        .map_err(|error| self.error(&error))
    }

    async fn keep_report(&self, report: &Report) -> Result<()> {
        let text = serde_json::to_string(report).map_err(|error| Error::internal(error.to_string()))?;
        let done = sqlx::query("UPDATE runs SET report = ?2 WHERE run_id = ?1 AND state = 'running'")
            .bind(&report.run_id)
            .bind(text)
            .execute(&self.pool)
            .await
            .map_err(|error| self.error(&error))?;
        self.known(done.rows_affected(), &report.run_id)
    }

    /// Records the end of a run, also of one that was never recorded as begun.
    async fn end(&self, report: &Report) -> Result<()> {
        let text = serde_json::to_string(report).map_err(|error| Error::internal(error.to_string()))?;
        let decision = serde_json::to_value(report.decision).map_err(|error| Error::internal(error.to_string()))?;
        sqlx::query(
            "INSERT INTO runs (run_id, pipeline, unit, state, fingerprint, rules_digest, started_at, ended_at,
                               decision, rows_read, rows_published, rows_quarantined, score, report)
             VALUES (?1, ?2, ?3, 'finished', '', ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
             ON CONFLICT (run_id) DO UPDATE SET state = 'finished', ended_at = ?6, decision = ?7, rows_read = ?8,
                 rows_published = ?9, rows_quarantined = ?10, score = ?11, report = ?12, error = NULL",
        )
        .bind(&report.run_id)
        .bind(&report.pipeline)
        .bind(report.unit.as_deref().unwrap_or("all"))
        .bind(&report.rules_digest)
        .bind(&report.started_at)
        .bind(Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true))
        .bind(decision.as_str())
        .bind(signed(report.rows.read))
        .bind(signed(report.rows.published))
        .bind(signed(report.rows.quarantined))
        .bind(report.score)
        .bind(text)
        .execute(&self.pool)
        .await
        .map(drop)
        .map_err(|error| self.error(&error))
    }

    async fn end_without_report(&self, run_id: &str, reason: &str) -> Result<()> {
        let done = sqlx::query(
            "UPDATE runs SET state = 'failed', ended_at = ?2, error = ?3, report = NULL
             WHERE run_id = ?1 AND state = 'running'",
        )
        .bind(run_id)
        .bind(Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true))
        .bind(reason)
        .execute(&self.pool)
        .await
        .map_err(|error| self.error(&error))?;
        self.known(done.rows_affected(), run_id)
    }

    fn known(&self, rows: u64, run_id: &str) -> Result<()> {
        if rows == 1 {
            return Ok(());
        }
        Err(Error::internal(format!(
            "the run `{run_id}` is not under way according to `{}`",
            self.path.display()
        )))
    }
}

impl RunStore for SqliteStore {
    fn unfinished<'a>(&'a self, pipeline: &'a str, unit: &'a str) -> BoxFuture<'a, Result<Option<Unfinished>>> {
        Box::pin(self.find_unfinished(pipeline, unit))
    }

    fn begin<'a>(&'a self, intent: &'a RunIntent) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.insert(intent))
    }

    fn publishing<'a>(&'a self, report: &'a Report) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.keep_report(report))
    }

    fn finish<'a>(&'a self, report: &'a Report) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.end(report))
    }

    fn fail<'a>(&'a self, run_id: &'a str, error: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.end_without_report(run_id, error))
    }
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn summary(row: &SqliteRow) -> Result<RunSummary, sqlx::Error> {
    let count = |name: &str| {
        row.try_get::<Option<i64>, _>(name)
            .map(|count| count.and_then(|count| u64::try_from(count).ok()))
    };
    Ok(RunSummary {
        run_id: row.try_get("run_id")?,
        pipeline: row.try_get("pipeline")?,
        unit: row.try_get("unit")?,
        state: match row.try_get::<String, _>("state")?.as_str() {
            "finished" => RunState::Finished,
            "failed" => RunState::Failed,
            _ => RunState::Running,
        },
        started_at: row.try_get("started_at")?,
        ended_at: row.try_get("ended_at")?,
        decision: row.try_get("decision")?,
        rows_read: count("rows_read")?,
        rows_published: count("rows_published")?,
        rows_quarantined: count("rows_quarantined")?,
        score: row.try_get("score")?,
        error: row.try_get("error")?,
    })
}

/// An error of the database, by what the caller must do. The codes are SQLite's own.
fn database_error(path: &Path, error: &sqlx::Error) -> Error {
    let code = match error {
        sqlx::Error::Database(inner) => inner
            .code()
            .and_then(|code| code.parse::<u32>().ok())
            .map(|code| code & 0xff),
        _ => None,
    };
    let (kind, hint) = match code {
        Some(5 | 6) => (
            ErrorKind::Unavailable,
            Some("another process is writing to it: run again"),
        ),
        Some(8 | 13 | 14) => (
            ErrorKind::Refused,
            Some("it cannot be written to: look at permissions and free space"),
        ),
        Some(11 | 26) => (
            ErrorKind::Corrupt,
            Some("it is no state database: move it away, or name another"),
        ),
        _ => match error {
            sqlx::Error::Io(inner) => (Error::from(std::io::Error::from(inner.kind())).kind, None),
            sqlx::Error::PoolTimedOut => (
                ErrorKind::Unavailable,
                Some("another process is writing to it: run again"),
            ),
            _ => (ErrorKind::Internal, None),
        },
    };
    let error = Error::new(kind, format!("the state database `{}`: {error}", path.display()));
    match hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn intent(run: &str, unit: &str) -> RunIntent {
        RunIntent {
            run_id: run.to_owned(),
            pipeline: "orders".to_owned(),
            unit: unit.to_owned(),
            fingerprint: "f1".to_owned(),
            rules_digest: "r1".to_owned(),
            started_at: Utc::now(),
        }
    }

    fn report(run: &str) -> Report {
        serde_json::from_value(json!({
            "format_version": 1, "run_id": run, "pipeline": "orders", "unit": "2024", "layer": null, "contract": null,
            "rules_digest": "r1", "engine": "local", "started_at": "2026-01-01T00:00:00Z",
            "now": "2026-01-01T00:00:00Z", "timezone": "UTC", "duration_ms": 1, "decision": "publish",
            "decision_reasons": [], "rows": {"read": 7, "valid": 7, "invalid": 0, "quarantined": 0, "held": 0,
            "dropped": {}, "published": 7}, "score": 1.0, "dimensions": {}, "checks": [], "reconciliation": [],
            "timings_ms": {}
        }))
        .unwrap()
    }

    #[tokio::test]
    async fn a_run_is_unfinished_until_it_ends() {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&folder.path().join("new/state.db")).await.unwrap();
        assert_eq!(store.unfinished("orders", "2024").await.unwrap(), None);
        let begun = intent("a", "2024");
        store.begin(&begun).await.unwrap();
        assert_eq!(store.unfinished("orders", "2025").await.unwrap(), None);
        let found = store.unfinished("orders", "2024").await.unwrap().unwrap();
        assert_eq!((found.intent, found.report), (begun, None));
        store.publishing(&report("a")).await.unwrap();
        let found = store.unfinished("orders", "2024").await.unwrap().unwrap();
        assert_eq!(found.report, Some(report("a")));
        assert_eq!(store.report("a").await.unwrap(), None);
        store.finish(&report("a")).await.unwrap();
        assert_eq!(store.unfinished("orders", "2024").await.unwrap(), None);
        assert_eq!(store.report("a").await.unwrap(), Some(report("a")));
    }

    #[tokio::test]
    async fn history_is_newest_first_and_outlives_the_process() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.db");
        let store = SqliteStore::open(&path).await.unwrap();
        store.begin(&intent("a", "2024")).await.unwrap();
        store.fail("a", "no such bucket").await.unwrap();
        store.finish(&report("b")).await.unwrap();
        drop(store);
        let store = SqliteStore::open(&path).await.unwrap();
        let history = store.history(10, Some("orders")).await.unwrap();
        assert_eq!(
            history.iter().map(|run| run.run_id.as_str()).collect::<Vec<_>>(),
            ["b", "a"]
        );
        assert_eq!(history[0].decision.as_deref(), Some("publish"));
        assert_eq!((history[0].rows_read, history[0].state), (Some(7), RunState::Finished));
        assert_eq!(
            (history[1].error.as_deref(), history[1].state),
            (Some("no such bucket"), RunState::Failed)
        );
        assert_eq!(store.history(1, None).await.unwrap().len(), 1);
        assert!(store.history(10, Some("other")).await.unwrap().is_empty());
        assert!(store.fail("a", "again").await.is_err());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn several_processes_may_open_and_write_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.db");
        let tasks: Vec<_> = (0..6)
            .map(|task| {
                let path = path.clone();
                tokio::spawn(async move {
                    let store = SqliteStore::open(&path).await?;
                    store
                        .begin(&intent(&format!("run{task}"), &format!("unit{task}")))
                        .await
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap().unwrap();
        }
        let store = SqliteStore::open(&path).await.unwrap();
        assert_eq!(store.history(100, None).await.unwrap().len(), 6);
    }

    #[tokio::test]
    async fn what_is_no_database_or_too_new_is_told_as_such() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.db");
        std::fs::write(
            &path,
            "this is certainly not a database file, whatever its name says".repeat(20),
        )
        .unwrap();
        assert_eq!(SqliteStore::open(&path).await.unwrap_err().kind, ErrorKind::Corrupt);
        let path = folder.path().join("newer.db");
        let store = SqliteStore::open(&path).await.unwrap();
        sqlx::raw_sql("PRAGMA user_version = 99")
            .execute(&store.pool)
            .await
            .unwrap();
        drop(store);
        assert_eq!(SqliteStore::open(&path).await.unwrap_err().kind, ErrorKind::Invalid);
    }
}
