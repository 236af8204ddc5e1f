import { createGauge } from '../../../lib/planes/gauge.ts'
import { createKeyedGauge } from '../../../lib/planes/keyed-gauge.ts'
import type { Memory } from '../../../lib/planes/memory.ts'
import type { AdmissionMeter } from '../../../net/listener/admission.ts'
import { internalError } from '../message/json-rpc.ts'
import type { TargetFailure } from '../message/message.ts'

/** Limits on MCP sessions and programs of all data planes together (`config.limits`). */
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
export function createSessionSlots(limits: McpLimits, meterOf: MeterOf, memory: Memory): Slots {
  const { maxMcpSessions: total, maxMcpSessionsPerClient: perClient } = limits
  return createSlots({ noun: 'sessions', total, perClient }, meterOf, memory)
}

/** Slots of programs of stdio targets for all endpoints together. */
export function createProgramSlots(limits: McpLimits, meterOf: MeterOf, memory: Memory): Slots {
  const { maxMcpPrograms: total, maxMcpProgramsPerClient: perClient } = limits
  return createSlots({ noun: 'programs', total, perClient }, meterOf, memory)
}

type SlotKind = { noun: string; total: number; perClient: number }

function createSlots(kind: SlotKind, meterOf: MeterOf, memory: Memory): Slots {
  const { noun, total, perClient } = kind
  const meters = { total: meterOf(`mcp_${noun}`), client: meterOf(`mcp_${noun}_per_client`) }
  const used = createGauge(memory, `mcp ${noun}`)
  const clients = createKeyedGauge(memory, `mcp ${noun}`, total)
  const limits = { max: perClient, total: used, maxTotal: total }

  /** Occupies a slot. Returns its release, or the exceeded limit. */
  function occupy(client: string | undefined): LimitScope | (() => void) {
    if (client === undefined) return used.tryAdd(1, total) ? () => used.subtract(1) : 'total'
    const opened = clients.open(client, limits)
    if (opened.kind !== 'open') return opened.kind === 'key' ? 'client' : 'total'
    return () => {
      opened.entry.close()
      used.subtract(1)
    }
  }

  return {
    exhausted(client) {
      if (client !== undefined && clients.countOf(client) >= perClient) return 'client'
      return used.total() >= total ? 'total' : undefined
    },
    admit(client) {
      const occupied = occupy(client)
      if (typeof occupied === 'string') {
        meters[occupied].refused()
        return { kind: 'refused', bound: occupied, failure: failureOf(kind, occupied) }
      }
      meters.total.changed(1)
      let released = false
      return {
        kind: 'admitted',
        slot: {
          release() {
            if (released) return
            released = true
            occupied()
            meters.total.changed(-1)
          },
        },
      }
    },
  }
}

function failureOf({ noun, total, perClient }: SlotKind, bound: LimitScope): TargetFailure {
  const message =
    bound === 'client'
      ? `too many MCP ${noun} of this client: at most ${perClient} at a time`
      : `too many MCP ${noun}: the gateway has room for ${total}`
  return { kind: 'refused', status: bound === 'client' ? 429 : 503, code: internalError, message }
}
