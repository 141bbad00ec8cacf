//! An order service with async handlers: customers place orders for products in stock, look at them and cancel them, while
//! one of them makes a report. In a directory it goes on with what it finds there. At the end nothing may have been lost.
//!
//! `cargo run --release -p ensilo --example order_service -- 20000 shop`: so many requests, in this directory; in memory if
//! it is left out

use std::cmp::Reverse;
use std::fmt;
use std::time::{Duration, Instant};

use ensilo::{Columns, Database, Index, Priority, Row, Table, Timestamp};

#[derive(Clone, Debug, Row)]
#[row(table = "product")]
struct Product {
    #[row(key)]
    id: u32,
    price: i64,
    in_stock: u32,
    name: String,
}

#[derive(Columns)]
#[columns(of = Product)]
struct Stock {
    in_stock: u32,
}

/// The orders of a customer lie side by side.
#[derive(Clone, Debug, Row)]
#[row(table = "order", index(name = "by_time", columns(placed desc)))]
struct Order {
    #[row(key)]
    customer: u32,
    #[row(key)]
    number: u32,
    product: u32,
    count: u32,
    total: i64,
    placed: Timestamp,
    is_cancelled: bool,
}

/// Why a handler refuses a request.
#[derive(Debug)]
enum ServiceError {
    NoSuchProduct(u32),
    OutOfStock { left: u32 },
    NoSuchOrder,
    Database(ensilo::Error),
}

impl From<ensilo::Error> for ServiceError {
    fn from(error: ensilo::Error) -> Self {
        ServiceError::Database(error)
    }
}

impl fmt::Display for ServiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServiceError::NoSuchProduct(id) => write!(f, "there is no product {id}"),
            ServiceError::OutOfStock { left } => write!(f, "only {left} are left"),
            ServiceError::NoSuchOrder => f.write_str("there is no such order"),
            ServiceError::Database(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ServiceError {}

/// What all handlers share.
#[derive(Clone)]
struct Service {
    db: Database,
    products: Table<Product>,
    orders: Table<Order>,
    by_time: Index<Order, Reverse<Timestamp>>,
}

impl Service {
    fn open(db: Database) -> ensilo::Result<Service> {
        let (products, orders) = (db.table::<Product>()?, db.table::<Order>()?);
        Ok(Service { by_time: orders.index("by_time")?, db, products, orders })
    }

    /// Places an order and returns its number and what it costs.
    async fn place(&self, customer: u32, product: u32, count: u32) -> Result<(u32, i64), ServiceError> {
        let Service { db, products, orders, .. } = self.clone();
        db.transact_async_as(move |tx| {
            let Some(found) = products.get(tx, product)? else {
                return Err(ServiceError::NoSuchProduct(product));
            };
            if found.in_stock < count {
                return Err(ServiceError::OutOfStock { left: found.in_stock });
            }
            products.update(tx, product, |stock: &mut Stock| stock.in_stock -= count)?;
            let last = orders.prefix((customer,)).last(tx)?;
            let number = last.map_or(1, |((_, number), _)| number + 1);
            let total = found.price * i64::from(count);
            let placed = Timestamp::now();
            let order = Order { customer, number, product, count, total, placed, is_cancelled: false };
            orders.insert(tx, &order)?;
            Ok((number, total))
        })
        .await
    }

    async fn cancel(&self, customer: u32, number: u32) -> Result<(), ServiceError> {
        let Service { db, products, orders, .. } = self.clone();
        db.transact_async_as(move |tx| {
            let Some(order) = orders.get(tx, (customer, number))?.filter(|order| !order.is_cancelled) else {
                return Err(ServiceError::NoSuchOrder);
            };
            orders.update(tx, (customer, number), |order: &mut Order| order.is_cancelled = true)?;
            products.update(tx, order.product, |stock: &mut Stock| stock.in_stock += order.count)?;
            Ok(())
        })
        .await
    }

    /// The orders of a customer, the last ones first: short, and somebody waits for it.
    async fn last_orders(&self, customer: u32) -> Result<Vec<Order>, ServiceError> {
        let Service { db, orders, .. } = self.clone();
        let job = db.job().priority(Priority::High);
        Ok(job.read_async(move |tx| orders.prefix((customer,)).reverse().limit(5).rows(tx)).await?)
    }

    /// What was ordered and not cancelled: how many orders, and their sum. A report, which disturbs nobody.
    async fn turnover(&self) -> Result<(usize, i64), ServiceError> {
        let Service { db, by_time, .. } = self.clone();
        let report = db.read_stale_async(move |tx| {
            let (mut count, mut sum) = (0, 0);
            for row in by_time.scan().iter(tx) {
                let (_, order) = row?;
                if !order.is_cancelled {
                    (count, sum) = (count + 1, sum + order.total);
                }
            }
            Ok((count, sum))
        });
        Ok(report.await?)
    }
}

const PRODUCTS: u32 = 50;
const CUSTOMERS: u32 = 100;
const IN_STOCK: u32 = 500;

/// Fills the shelves, if they were never filled.
fn stock_up(service: &Service) -> ensilo::Result<()> {
    service.db.transact(|tx| {
        for id in 0..PRODUCTS {
            let price = 100 + i64::from(id);
            let product = Product { id, price, in_stock: IN_STOCK, name: format!("product {id}") };
            service.products.insert_or_get(tx, &product)?;
        }
        Ok(())
    })
}

/// One client: it places orders, looks at them, and cancels some.
async fn serve(service: Service, client: u32, requests: u32) -> Result<u32, ServiceError> {
    let mut refused = 0;
    for step in 0..requests {
        let customer = (client * 31 + step * 7) % CUSTOMERS;
        let outcome = match step % 5 {
            0..=2 => {
                service.place(customer, (client + step * 13) % (PRODUCTS + 1), 1 + step % 3).await.map(drop)
            }
            3 => service.last_orders(customer).await.map(drop),
            _ => match service.last_orders(customer).await?.first() {
                Some(last) => service.cancel(customer, last.number).await,
                None => Ok(()),
            },
        };
        match outcome {
            Ok(()) => {}
            Err(ServiceError::Database(error)) => return Err(error.into()),
            Err(_) => refused += 1,
        }
    }
    Ok(refused)
}

/// Checks that what is missing on the shelves is in the orders.
fn check(service: &Service) -> ensilo::Result<()> {
    let (left, sold) = service.db.read(|tx| {
        let (mut left, mut sold) = (0, 0);
        service.products.scan().columns::<Stock>().for_each(tx, |_, stock| left += stock.in_stock)?;
        service
            .orders
            .scan()
            .for_each(tx, |_, order| sold += if order.is_cancelled { 0 } else { order.count })?;
        Ok((left, sold))
    })?;
    assert_eq!(left + sold, PRODUCTS * IN_STOCK, "{left} left, {sold} sold");
    println!("{left} pieces are left, {sold} are sold: nothing is lost");
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let requests: u32 = arguments.next().map_or(Ok(20_000), |text| text.parse())?;
    let db = match arguments.next() {
        // `ensilo stat DIRECTORY --live` shows what it does meanwhile.
        Some(directory) => Database::options().live_statistics(true).open(directory)?,
        None => Database::in_memory()?,
    };
    let service = Service::open(db)?;
    stock_up(&service)?;
    let begin = Instant::now();
    let clients: Vec<_> =
        (0..16).map(|client| tokio::spawn(serve(service.clone(), client, requests / 16))).collect();
    // A caller that has no time to wait gives its request up.
    let in_time = tokio::time::timeout(Duration::from_millis(1), service.turnover()).await;
    println!("a report within a millisecond: {}", if in_time.is_ok() { "yes" } else { "no" });
    let mut refused = 0;
    for client in clients {
        refused += client.await??;
    }
    let seconds = begin.elapsed().as_secs_f64();
    println!("{:.0} requests a second, {refused} refused", f64::from(requests / 16 * 16) / seconds);
    let (count, sum) = service.turnover().await?;
    println!("a second ago at most there were {count} orders for {sum}");
    check(&service)?;
    service.db.close()?;
    Ok(())
}
