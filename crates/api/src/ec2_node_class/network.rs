//! Network settings of a machine.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Idle timeouts of tracked connections, in seconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("has(self.tcpEstablishedTimeout) || has(self.udpStreamTimeout) || has(self.udpTimeout)", "at least one timeout is needed"))]
pub struct ConnectionTracking {
    /// For established TCP connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 60, max = 432000))]
    pub tcp_established_timeout: Option<i32>,
    /// For UDP flows that have seen more than one request and answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 60, max = 180))]
    pub udp_stream_timeout: Option<i32>,
    /// For other UDP flows.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 30, max = 60))]
    pub udp_timeout: Option<i32>,
}

/// How the machine's metadata service answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct MetadataOptions {
    /// Whether it answers at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "enabled", "enum" = ["enabled", "disabled"]))]
    pub http_endpoint: Option<String>,
    /// Whether it answers over IPv6.
    #[serde(rename = "httpProtocolIPv6", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "disabled", "enum" = ["enabled", "disabled"]))]
    pub http_protocol_ipv6: Option<String>,
    /// How many network hops an answer survives; 1 keeps pods off.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64), extend("default" = 1))]
    pub http_put_response_hop_limit: Option<i64>,
    /// Whether requests need a session token.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "required", "enum" = ["required", "optional"]))]
    pub http_tokens: Option<String>,
}

/// A network interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct NetworkInterface {
    /// Its place on the card.
    #[schemars(range(min = 0))]
    pub device_index: i32,
    /// Whether it carries addresses, or only fabric traffic.
    #[schemars(extend("enum" = ["interface", "efa-only"]))]
    pub interface_type: String,
    /// The card it sits on.
    #[schemars(range(min = 0))]
    pub network_card_index: i32,
}
