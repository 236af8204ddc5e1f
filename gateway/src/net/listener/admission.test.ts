import { describe, expect, it } from 'vitest'
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
    )
    expect([1, 2, 3, 4].map(() => connect('10.0.0.1', true) !== undefined)).toEqual([true, true, true, false])
  })
})
