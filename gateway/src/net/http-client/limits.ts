/** Bounds on calls to one origin. */
export const defaultUpstreamLimits = { maxUpstreamConnections: 2_000, maxUpstreamQueue: 500 }
