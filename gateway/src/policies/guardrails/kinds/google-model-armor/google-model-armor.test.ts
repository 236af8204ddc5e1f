import { describe, expect, it } from 'vitest'
import { fixtureGuards, jsonReply, pass, sentTo } from '../../../../../test/fixtures/guardrails.ts'
import type { OutgoingRequest, Reply } from '../../../../net/http-client/send.ts'
import { checkGoogleModelArmor, type GoogleModelArmorConfig } from './google-model-armor.ts'

const template = { projectId: 'p-1', templateId: 'prompts' }
const policies = { backendAuth: { key: 'google-canary' } }
const chat = (content: string) => ({ model: 'm', messages: [{ role: 'user', content }] })

const result = (filters: object, more: object = {}) => ({
  sanitizationResult: {
    filterMatchState: JSON.stringify(filters).includes('"MATCH_FOUND"') ? 'MATCH_FOUND' : 'NO_MATCH_FOUND',
    invocationResult: 'SUCCESS',
    filterResults: filters,
    ...more,
  },
})

const filters = (matchState: string) => ({
  csam: { csamFilterFilterResult: { executionState: 'EXECUTION_SUCCESS', matchState: 'NO_MATCH_FOUND' } },
  rai: { raiFilterResult: { matchState, raiFilterTypeResults: { dangerous: { matchState } } } },
  sdp: { sdpFilterResult: { inspectResult: { matchState: 'NO_MATCH_FOUND' } } },
})

/** Texts with `bad` match a filter. */
function modelArmor(request: OutgoingRequest): Reply {
  const isBad = JSON.stringify(sentTo(request)).includes('bad')
  return jsonReply(result(filters(isBad ? 'MATCH_FOUND' : 'NO_MATCH_FOUND')))
}

async function ask(
  config: Partial<GoogleModelArmorConfig>,
  content: string,
  answer: (request: OutgoingRequest) => Reply = modelArmor,
) {
  const guard = { googleModelArmor: { ...template, policies, ...config } }
  const guards = fixtureGuards({ request: [guard] }, answer)
  return { ...(await pass(guards, { request: chat(content) })), calls: guards.calls }
}

describe('googleModelArmor', () => {
  it('sends prompts to the template of the region', async () => {
    const { status, calls } = await ask({ location: 'europe-west4' }, 'fine')
    expect(status).toBe(200)
    expect(calls[0]).toMatchObject({
      origin: 'https://modelarmor.europe-west4.rep.googleapis.com:443',
      path: '/v1/projects/p-1/locations/europe-west4/templates/prompts:sanitizeUserPrompt',
      headers: { authorization: 'Bearer google-canary' },
    })
    expect(sentTo(calls[0])).toEqual({ userPromptData: { text: 'fine' } })
  })

  it('sends responses to their own operation', async () => {
    const guard = { googleModelArmor: { ...template, policies } }
    const guards = fixtureGuards({ response: [guard] }, modelArmor)
    await pass(guards)
    expect(guards.calls[0]?.path).toBe(
      '/v1/projects/p-1/locations/us-central1/templates/prompts:sanitizeModelResponse',
    )
    expect(sentTo(guards.calls[0])).toEqual({ modelResponseData: { text: 'Hello' } })
  })

  it('rejects matches of filters', async () => {
    const { status, exchange } = await ask({}, 'something bad')
    expect(status).toBe(403)
    expect(exchange.guards).toMatchObject([{ outcome: 'reject', reason: 'match: rai' }])
    const list = () =>
      jsonReply(result([{ sdpFilterResult: { deidentifyResult: { matchState: 'MATCH_FOUND' } } }]))
    expect((await ask({}, 'fine', list)).status).toBe(403)
  })

  it('uses the identity of the environment without a credential', async () => {
    expect((await ask({ policies: undefined }, 'fine')).status).toBe(503)
  })

  it.each([
    ['no result', {}],
    ['no state', { sanitizationResult: { invocationResult: 'SUCCESS', filterResults: {} } }],
    ['skipped filters', result(filters('NO_MATCH_FOUND'), { invocationResult: 'PARTIAL' })],
    ['failed filters', result({}, { invocationResult: 'FAILURE' })],
  ])('fails for a response with %s', async (_, response) => {
    expect((await ask({}, 'fine', () => jsonReply(response))).status).toBe(503)
  })

  it('refuses names that change the path or the host', () => {
    const found: string[] = []
    const config = { projectId: 'p/../q', templateId: 't?x', location: 'a.b/c' }
    checkGoogleModelArmor(config, (path) => found.push(path.join('.')))
    expect(found).toEqual(['projectId', 'templateId', 'location'])
    checkGoogleModelArmor(template, (path) => found.push(path.join('.')))
    expect(found).toHaveLength(3)
  })
})
