//! The end-to-end suites, one module each. `cargo xtask e2e bed` runs the suite `bed`.

/// Cases as tests: under a controller that runs through, and those named again under one that is killed every few seconds.
macro_rules! cases {
    (steady: [$($module:ident::$case:ident),* $(,)?], killed: [$($of:ident::$again:ident),* $(,)?] $(,)?) => {
        mod steady {
            $(#[tokio::test]
            async fn $case() -> anyhow::Result<()> {
                kerf_e2e::world::world(kerf_e2e::turns::Life::Steady, super::$module::$case).await
            })*
        }

        mod killed {
            $(#[tokio::test]
            async fn $again() -> anyhow::Result<()> {
                kerf_e2e::world::world(kerf_e2e::turns::Life::Killed, super::$of::$again).await
            })*
        }
    };
    (twice: [$($module:ident::$case:ident),* $(,)?]) => {
        cases! { steady: [$($module::$case),*], killed: [$($module::$case),*] }
    };
}

mod api;
mod bed;
mod controller;
mod disruption;
mod scheduling;
