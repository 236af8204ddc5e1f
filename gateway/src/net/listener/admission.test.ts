import { describe, expect, it } from 'vitest'
import { createPlaneMemories } from '../../../test/support/plane-memories.ts'
import { createLocalMemory } from '../../lib/planes/memory.ts'
import { type AdmissionMeter, createAdmission, defaultAdmissionLimits } from './admission.ts'

function metered() {
  const inUse = new Map<string, number>()
  const refused = new Map<string, number>()
  const meters = (name: string): AdmissionMeter => ({
    changed: (by: number) => void inUse.set(name, (inUse.get(name) ?? 0) + by),
    refused: () => void refused.set(name, (refused.get(name) ?? 0) + 1),
  })
  return { meters, inUse, refused }
}

describe('admission of connections', () => {
  it('rejects connections above the total until one has closed', () => {
    const { meters, inUse, refused } = metered()
    const { connect } = createAdmission(
      { ...defaultAdmissionLimits, maxConnections: 2, maxConnectionsPerClient: 10 },
      meters,
      createLocalMemory(),
    )
    const first = connect('192.0.2.1', false)
    connect('192.0.2.2', false)
    expect(connect('192.0.2.3', false)).toBeUndefined()
    expect(inUse.get('connections')).toBe(2)
    expect(refused.get('connections')).toBe(1)
    first?.release()
    expect(connect('192.0.2.3', false)).toBeDefined()
    expect(inUse.get('connections')).toBe(2)
  })

  it('counts the addresses of an IPv6 /64 as one client', () => {
    const { meters, refused } = metered()
    const { connect } = createAdmission(
      { ...defaultAdmissionLimits, maxConnections: 10, maxConnectionsPerClient: 2 },
      meters,
      createLocalMemory(),
    )
    const first = connect('2001:db8::1', false)
    connect('2001:db8::2', false)
    expect(connect('2001:db8::3', false)).toBeUndefined()
    expect(refused.get('connections_per_client')).toBe(1)
    expect(connect('2001:db8:0:1::3', false)).toBeDefined()
    first?.release()
    expect(connect('2001:db8::3', false)).toBeDefined()
  })

  it('limits a proxy by the total only', () => {
    const { meters } = metered()
    const { connect } = createAdmission(
      { ...defaultAdmissionLimits, maxConnections: 3, maxConnectionsPerClient: 1 },
      meters,
      createLocalMemory(),
    )
    expect([1, 2, 3, 4].map(() => connect('10.0.0.1', true) !== undefined)).toEqual([true, true, true, false])
  })

  it('counts a connection for the client that a proxy reports', () => {
    const { meters, inUse, refused } = metered()
    const { connect } = createAdmission(
      { ...defaultAdmissionLimits, maxConnections: 3, maxConnectionsPerClient: 1 },
      meters,
      createLocalMemory(),
    )
    const [one, two, three] = [1, 2, 3].map(() => connect('10.0.0.1', true))
    expect(one?.moveTo('192.0.2.1', false)).toBe(true)
    expect(two?.moveTo('192.0.2.1', false)).toBe(false)
    expect(refused.get('connections_per_client')).toBe(1)
    expect(three?.moveTo('192.0.2.1', true)).toBe(true)
    two?.release()
    expect(inUse.get('connections')).toBe(2)
    one?.release()
    three?.release()
    expect([1, 2, 3].map(() => connect('10.0.0.1', true) !== undefined)).toEqual([true, true, true])
    expect(connect('10.0.0.1', true)).toBeUndefined()
  })

  it('counts the connections of all data planes', () => {
    const { meters, inUse, refused } = metered()
    const limits = { ...defaultAdmissionLimits, maxConnections: 3, maxConnectionsPerClient: 2 }
    const [one, other] = createPlaneMemories(2).map((memory) => createAdmission(limits, meters, memory))
    const first = one?.connect('192.0.2.1', false)
    expect(other?.connect('192.0.2.1', false)).toBeDefined()
    expect(one?.connect('192.0.2.1', false)).toBeUndefined()
    expect(one?.connect('192.0.2.2', false)).toBeDefined()
    expect(other?.connect('192.0.2.3', false)).toBeUndefined()
    expect([...refused]).toEqual([
      ['connections_per_client', 1],
      ['connections', 1],
    ])
    first?.release()
    expect(other?.connect('192.0.2.1', false)).toBeDefined()
    expect(inUse.get('connections')).toBe(3)
  })
})

describe('admission of buffered bytes', () => {
  it('limits a client to half of the total, over all data planes', () => {
    const { meters, inUse, refused } = metered()
    const limits = { ...defaultAdmissionLimits, maxBufferedBytes: 100 }
    const [one, other] = createPlaneMemories(2).map((memory) => createAdmission(limits, meters, memory))
    const first = one?.connect('192.0.2.1', false)
    const second = other?.connect('192.0.2.1', false)
    const third = other?.connect('192.0.2.2', false)
    const proxy = one?.connect('192.0.2.3', true)
    expect([first?.acquireBytes(30), second?.acquireBytes(21), second?.acquireBytes(20)]).toEqual([
      true,
      false,
      true,
    ])
    expect([third?.acquireBytes(51), proxy?.acquireBytes(50), proxy?.acquireBytes(1)]).toEqual([
      false,
      true,
      false,
    ])
    first?.releaseBytes(10)
    expect([proxy?.acquireBytes(10), inUse.get('buffered_bytes'), refused.get('buffered_bytes')]).toEqual([
      true,
      100,
      3,
    ])
    for (const connection of [first, second, third, proxy]) connection?.release()
    expect(inUse.get('buffered_bytes')).toBe(0)
    first?.releaseBytes(10)
    expect([first?.acquireBytes(1), inUse.get('buffered_bytes')]).toEqual([false, 0])
  })

  it('counts limits above 32 bits', () => {
    const { meters } = metered()
    const limits = { ...defaultAdmissionLimits, maxBufferedBytes: 64 * 2 ** 30 }
    const { connect } = createAdmission(limits, meters, createLocalMemory())
    const connection = connect('192.0.2.1', false)
    for (let body = 0; body < 8; body++) expect(connection?.acquireBytes(2 ** 32)).toBe(true)
    expect(connection?.acquireBytes(1)).toBe(false)
    connection?.releaseBytes(1)
    expect(connection?.acquireBytes(1)).toBe(true)
  })
})
