import { describe, expect, it } from 'vitest'
import { call, fixtureGateway, jsonReply } from '../../../../test/fixtures/llm.ts'

describe('calls of clouds', () => {
  it.each([
    ['/model/claude/invoke', 9_999, 200],
    ['/v1/projects/p/locations/l/publishers/anthropic/models/claude:rawPredict', 9_999, 200],
    ['/model/claude/invoke', 10_000, 400],
  ])('at %s may have as many members as other calls: %i and the version', async (path, count, status) => {
    const gateway = fixtureGateway({ models: [{ name: '*', provider: 'anthropic' }] }, () => jsonReply({}))
    const members = Array.from({ length: count }, (_, index) => [`x${index}`, 1])
    const body = { anthropic_version: 'v', ...Object.fromEntries(members) }
    expect((await call(gateway, { path, body })).status).toBe(status)
    expect(gateway.sent).toHaveLength(status === 200 ? 1 : 0)
  })
})
