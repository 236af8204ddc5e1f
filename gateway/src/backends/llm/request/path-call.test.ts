import { describe, expect, it } from 'vitest'
import { bodyOf, call, fixtureGateway, jsonReply } from '../../../../test/fixtures/llm.ts'

const bedrock = {
  name: '*',
  provider: 'bedrock',
  params: { awsRegion: 'eu-central-1' },
  auth: { key: 'k' },
} as const
const invokePath = '/model/m/invoke'

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

  it.each([
    ['application/octet-stream', 200],
    ['Application/Octet-Stream; x=y', 200],
    ['application/octet-stream;charset=utf-16', 415],
    ['application/octet-streams', 415],
  ])('accept InvokeModel with content type %s: %i', async (type, status) => {
    const gateway = fixtureGateway({ models: [bedrock] }, () => jsonReply({}))
    const request = { path: invokePath, headers: { 'content-type': type }, body: { prompt: 'x' } }
    expect((await call(gateway, request)).status).toBe(status)
    if (status === 200) expect(gateway.sent.map((sent) => bodyOf(sent))).toEqual([{ prompt: 'x' }])
  })
})
