import { describe, expect, it } from 'vitest'
import { createPlaneMemories } from '../../../../test/support/plane-memories.ts'
import { createLocalMemory } from '../../../lib/planes/memory.ts'
import { createProgramSlots, createSessionSlots, defaultMcpLimits } from './admission.ts'

function metered() {
  const inUse = new Map<string, number>()
  const refused = new Map<string, number>()
  const meterOf = (name: string) => ({
    changed: (by: number) => void inUse.set(name, (inUse.get(name) ?? 0) + by),
    refused: () => void refused.set(name, (refused.get(name) ?? 0) + 1),
  })
  return { meterOf, inUse, refused }
}

describe('slots', () => {
  it('of a client are refused above its bound with 429, until one is released', () => {
    const { meterOf, inUse, refused } = metered()
    const slots = createProgramSlots(
      { ...defaultMcpLimits, maxMcpProgramsPerClient: 2 },
      meterOf,
      createLocalMemory(),
    )
    const first = slots.admit('alice')
    slots.admit('alice')
    expect(slots.admit('alice')).toMatchObject({
      bound: 'client',
      failure: {
        kind: 'refused',
        status: 429,
        message: 'too many MCP programs of this client: at most 2 at a time',
      },
    })
    expect(slots.admit('bob').kind).toBe('admitted')
    expect(slots.admit(undefined).kind).toBe('admitted')
    expect([inUse.get('mcp_programs'), refused.get('mcp_programs_per_client')]).toEqual([4, 1])
    if (first.kind === 'admitted') {
      first.slot.release()
      first.slot.release()
    }
    expect(inUse.get('mcp_programs')).toBe(3)
    expect(slots.admit('alice').kind).toBe('admitted')
    expect(slots.admit('alice').kind).toBe('refused')
  })

  it('of all clients are refused above the total with 503', () => {
    const { meterOf, refused } = metered()
    const slots = createSessionSlots({ ...defaultMcpLimits, maxMcpSessions: 2 }, meterOf, createLocalMemory())
    slots.admit('alice')
    slots.admit('bob')
    expect(slots.exhausted('carol')).toBe('total')
    expect(slots.admit('carol')).toMatchObject({
      bound: 'total',
      failure: { status: 503, message: 'too many MCP sessions: the gateway has room for 2' },
    })
    expect(refused.get('mcp_sessions')).toBe(1)
  })

  it('are those of all data planes together', () => {
    const { meterOf, inUse, refused } = metered()
    const limits = { ...defaultMcpLimits, maxMcpSessions: 3, maxMcpSessionsPerClient: 2 }
    const [one, other] = createPlaneMemories(2).map((memory) => createSessionSlots(limits, meterOf, memory))
    const first = one?.admit('alice')
    expect(other?.admit('alice').kind).toBe('admitted')
    expect([one?.exhausted('alice'), other?.exhausted('alice'), one?.exhausted('bob')]).toEqual([
      'client',
      'client',
      undefined,
    ])
    expect(one?.admit('alice')).toMatchObject({ kind: 'refused', bound: 'client' })
    expect(other?.admit(undefined).kind).toBe('admitted')
    expect(one?.admit('bob')).toMatchObject({ kind: 'refused', bound: 'total' })
    if (first?.kind === 'admitted') first.slot.release()
    expect(other?.admit('alice').kind).toBe('admitted')
    expect([inUse.get('mcp_sessions'), refused.get('mcp_sessions')]).toEqual([3, 1])
  })
})
