import type { AdmissionMeter } from '../../../net/listener/admission.ts'
import { internalError } from '../message/json-rpc.ts'
import type { TargetFailure } from '../message/message.ts'

/** Limits on MCP sessions and programs in the process (`config.limits`). */
export type McpLimits = {
  readonly maxMcpSessions: number
  readonly maxMcpSessionsPerClient: number
  readonly maxMcpPrograms: number
  readonly maxMcpProgramsPerClient: number
}

export const defaultMcpLimits: McpLimits = {
  maxMcpSessions: 10_000,
  maxMcpSessionsPerClient: 1_000,
  maxMcpPrograms: 256,
  maxMcpProgramsPerClient: 64,
}

/** Scope of the exceeded limit. */
export type LimitScope = 'total' | 'client'

/** An occupied slot. */
export type Slot = {
  /** Frees the slot. Idempotent. */
  release(): void
}

export type Admission =
  | { readonly kind: 'admitted'; readonly slot: Slot }
  | { readonly kind: 'refused'; readonly bound: LimitScope; readonly failure: TargetFailure }

/** Slots of one resource, in total and per client. */
export type Slots = {
  /** Limit that another slot of the client would exceed. */
  exhausted(client: string | undefined): LimitScope | undefined
  /** Acquires a slot. `client` is the key of the limit per client; undefined counts toward the total only. */
  admit(client: string | undefined): Admission
}

type MeterOf = (resource: string) => AdmissionMeter

/** Slots of sessions for all endpoints together. `meterOf` creates the instruments of each limit. */
export function createSessionSlots(limits: McpLimits, meterOf: MeterOf): Slots {
  return createSlots(
    { noun: 'sessions', total: limits.maxMcpSessions, perClient: limits.maxMcpSessionsPerClient },
    { total: meterOf('mcp_sessions'), client: meterOf('mcp_sessions_per_client') },
  )
}

/** Slots of programs of stdio targets for all endpoints together. */
export function createProgramSlots(limits: McpLimits, meterOf: MeterOf): Slots {
  return createSlots(
    { noun: 'programs', total: limits.maxMcpPrograms, perClient: limits.maxMcpProgramsPerClient },
    { total: meterOf('mcp_programs'), client: meterOf('mcp_programs_per_client') },
  )
}

function createSlots(
  { noun, total, perClient }: { noun: string; total: number; perClient: number },
  meters: Readonly<Record<LimitScope, AdmissionMeter>>,
): Slots {
  /** Number of slots by client. */
  const counts = new Map<string, number>()
  let used = 0

  function full(client: string | undefined): LimitScope | undefined {
    if (client !== undefined && (counts.get(client) ?? 0) >= perClient) return 'client'
    return used >= total ? 'total' : undefined
  }

  function count(client: string | undefined, by: 1 | -1): void {
    used += by
    meters.total.changed(by)
    if (client === undefined) return
    const left = (counts.get(client) ?? 0) + by
    if (left === 0) counts.delete(client)
    else counts.set(client, left)
  }

  function failureOf(bound: LimitScope): TargetFailure {
    const message =
      bound === 'client'
        ? `too many MCP ${noun} of this client: at most ${perClient} at a time`
        : `too many MCP ${noun}: the gateway has room for ${total}`
    return { kind: 'refused', status: bound === 'client' ? 429 : 503, code: internalError, message }
  }

  return {
    exhausted: full,
    admit(client) {
      const bound = full(client)
      if (bound !== undefined) {
        meters[bound].refused()
        return { kind: 'refused', bound, failure: failureOf(bound) }
      }
      count(client, 1)
      let released = false
      return {
        kind: 'admitted',
        slot: {
          release() {
            if (released) return
            released = true
            count(client, -1)
          },
        },
      }
    },
  }
}
