import { describe, expect, it } from 'vitest'
import type { Config } from '../schema.ts'
import { changesEndpointsOnly } from './endpoint-changes.ts'
import { shareStructure } from './structural-share.ts'

const before: Config = {
  gateways: { default: { port: 80 } },
  routes: [{ backends: [{ backend: '/a' }] }],
  backends: [
    { name: 'a', endpoints: [{ host: '10.0.0.1:80' }], policies: { tcp: { connectTimeout: '1s' } } },
    { name: 'b', host: 'b:80' },
  ],
}

function isLight(change: (config: Config) => object): boolean {
  return changesEndpointsOnly(before, shareStructure(before, change(structuredClone(before)) as Config))
}

const withBackends = (...backends: object[]) => isLight((config) => ({ ...config, backends }))
const [a = {}, b = {}] = before.backends ?? []

describe('changesEndpointsOnly', () => {
  it('holds for other endpoints, with equal policies', () => {
    expect(withBackends({ ...a, endpoints: [] }, b)).toBe(true)
    expect(withBackends({ ...a, endpoints: [{ host: '10.0.0.2:80', weight: 2 }] }, b)).toBe(true)
  })

  it('does not hold for any other change', () => {
    expect(isLight((config) => config)).toBe(false)
    expect(withBackends({ ...a, endpoints: [], policies: { tcp: { connectTimeout: '2s' } } }, b)).toBe(false)
    expect(withBackends({ name: 'a', endpoints: [] }, b)).toBe(false)
    expect(withBackends({ ...a, name: 'c', endpoints: [] }, b)).toBe(false)
    expect(withBackends({ name: 'a', host: 'a:80' }, b)).toBe(false)
    expect(withBackends({ ...a, endpoints: [] }, { name: 'b', host: 'c:80' })).toBe(false)
    expect(withBackends({ ...a, endpoints: [] })).toBe(false)
    expect(withBackends(b, { ...a, endpoints: [] })).toBe(false)
    const moved = { backends: [{ ...a, endpoints: [] }, b], routes: [] }
    expect(isLight((config) => ({ ...config, ...moved }))).toBe(false)
    expect(isLight(({ backends: _, ...config }) => config)).toBe(false)
  })
})
