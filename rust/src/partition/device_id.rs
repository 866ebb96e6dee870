//! Chooses the op that returns the device id: `partition_id` or `replica_id`.

use crate::error::{Code, Diagnostic, Result};

/// The numbers of replicas and of partitions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeviceCounts {
    /// The number of replicas of each partition.
    pub replica_count: i64,
    /// The number of partitions of each replica.
    pub partition_count: i64,
}

impl Default for DeviceCounts {
    fn default() -> Self {
        Self { replica_count: 1, partition_count: 1 }
    }
}

impl DeviceCounts {
    /// The op that returns the device id; an error if there are several replicas and several
    /// partitions.
    pub fn id_op(self) -> Result<&'static str> {
        if self.replica_count > 1 && self.partition_count > 1 {
            let message =
                "devices have no one number where there are several replicas of several partitions";
            let problem = Diagnostic::new(Code::InvalidPipeline, message);
            return Err(problem.with_hint("leave out replica-count or partition-count").into());
        }
        let counts_replicas = self.replica_count > 1;
        Ok(if counts_replicas { "stablehlo.replica_id" } else { "stablehlo.partition_id" })
    }
}
