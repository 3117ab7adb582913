//! The cloud takes machines back, with or without a warning, and runs short of some.

use kerf_model::cloud::InterruptionCause;

use super::super::Stage;
use crate::autoscaler::Shortage;
use crate::random::Random;
use crate::store::ApiError;

pub(super) fn lose_instance(stage: &mut Stage, random: &mut Random) -> Result<(), ApiError> {
    let now = stage.world.now();
    if let Some(id) = machine(stage, random) {
        stage.autoscaler.borrow_mut().cloud_mut().lose(&id, now);
    }
    Ok(())
}

/// For any cause; or it advises to leave the machine, which stays.
pub(super) fn interrupt(stage: &mut Stage, random: &mut Random) -> Result<(), ApiError> {
    let now = stage.world.now();
    let Some(id) = machine(stage, random) else { return Ok(()) };
    let mut autoscaler = stage.autoscaler.borrow_mut();
    if random.one_in(2) {
        autoscaler.cloud_mut().recommend(&id, now);
        return Ok(());
    }
    let cause = random.of([
        InterruptionCause::SpotReclaimed,
        InterruptionCause::Maintenance,
        InterruptionCause::Stopping,
        InterruptionCause::Terminating,
    ]);
    autoscaler.cloud_mut().interrupt(&id, cause, now);
    Ok(())
}

/// Of a kind, in a zone, or of a kind in a zone; or there is enough again.
pub(super) fn run_short(stage: &mut Stage, random: &mut Random) -> Result<(), ApiError> {
    let zone = random.of([None, Some("test-zone-a"), Some("test-zone-b")]);
    let capacity_type = random.of([None, Some("spot"), Some("on-demand")]);
    let shortage = Shortage {
        instance_type: None,
        zone: zone.map(str::to_owned),
        capacity_type: capacity_type.map(str::to_owned),
    };
    let is_any = shortage == Shortage::default();
    let shortages = if is_any { Vec::new() } else { vec![shortage] };
    stage.autoscaler.borrow_mut().cloud_mut().set_shortages(shortages);
    Ok(())
}

fn machine(stage: &Stage, random: &mut Random) -> Option<String> {
    let autoscaler = stage.autoscaler.borrow();
    random.pick(autoscaler.cloud().machines().map(|machine| machine.provider_id.to_owned()).collect())
}
