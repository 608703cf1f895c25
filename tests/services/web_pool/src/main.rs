//! An HTTP server before a database, as axum and deadpool are used: four connections to SQLite, whose calls are jobs of Tokio's blocking pool.  Ends on
//! SIGTERM when all that was asked is answered.  usage: web_pool PORT FILE
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use axum::Router;
use deadpool_sqlite::{Config, Hook, HookError, Pool, Runtime};
use rusqlite::{params, Connection, Error, TransactionBehavior};
use std::time::Duration;
use tokio::signal::unix::{signal, SignalKind};

type Answer = Result<String, StatusCode>;

async fn ask(pool: Pool, call: impl FnOnce(&mut Connection) -> Result<String, Error> + Send + 'static) -> Answer {
    let connection = pool.get().await.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
    match connection.interact(call).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(Error::QueryReturnedNoRows)) => Err(StatusCode::NOT_FOUND),
        _ => Err(StatusCode::INTERNAL_SERVER_ERROR),
    }
}

async fn get_item(State(pool): State<Pool>, Path(key): Path<i64>) -> Answer {
    ask(pool, move |c| c.query_row("SELECT text FROM items WHERE key = ?", [key], |row| row.get(0))).await
}

/// What the item is now, and how often it was put.
async fn put_item(State(pool): State<Pool>, Path(key): Path<i64>, text: String) -> Answer {
    ask(pool, move |c| {
        let change = c.transaction_with_behavior(TransactionBehavior::Immediate)?;
        change.execute(
            "INSERT INTO items VALUES (?1, ?2, 1) ON CONFLICT (key) DO UPDATE SET text = ?2, puts = puts + 1",
            params![key, text],
        )?;
        let (text, puts): (String, i64) =
            change.query_row("SELECT text, puts FROM items WHERE key = ?", [key], |row| Ok((row.get(0)?, row.get(1)?)))?;
        change.commit()?;
        Ok(format!("{text} {puts}"))
    })
    .await
}

fn prepare(c: &mut Connection) -> Result<(), Error> {
    c.busy_timeout(Duration::from_secs(60))?;
    c.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; -- a test's disk may be slow, which would be told, and rightly
         CREATE TABLE IF NOT EXISTS items (key INTEGER PRIMARY KEY, text TEXT, puts INTEGER)",
    )
}

#[tokio::main]
async fn main() {
    let args: Vec<String> = std::env::args().collect();
    let prepared = Hook::async_fn(|connection, _| {
        Box::pin(async move {
            match connection.interact(prepare).await {
                Ok(Ok(())) => Ok(()),
                failed => Err(HookError::message(format!("{failed:?}"))),
            }
        })
    });
    let pool = Config::new(&args[2]).builder(Runtime::Tokio1).unwrap().max_size(4).post_create(prepared).build().unwrap();
    drop(pool.get().await.unwrap());
    let routes = Router::new().route("/item/{key}", get(get_item).put(put_item)).with_state(pool.clone());
    let listener = tokio::net::TcpListener::bind(format!("127.0.0.1:{}", args[1])).await.unwrap();
    let mut end = signal(SignalKind::terminate()).unwrap();
    axum::serve(listener, routes).with_graceful_shutdown(async move { end.recv().await.unwrap() }).await.unwrap();
    pool.close();
}
