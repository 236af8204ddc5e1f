import { describe, expect, it } from 'vitest'
import { fixtureGuards, jsonReply, pass, sentTo } from '../../../../../test/fixtures/guardrails.ts'
import type { OutgoingRequest, Reply } from '../../../../net/http-client/send.ts'
import { type AzureContentSafetyConfig, checkAzureContentSafety } from './config.ts'

const endpoint = 'my-resource.cognitiveservices.azure.com'
const policies = { backendAuth: { key: 'azure-canary' } }
const chat = (content: string, role = 'user') => ({ model: 'm', messages: [{ role, content }] })

/** Answers of the published schemas: `bad` is severity 4, `slur` on a blocklist, `attack` an attack. */
function contentSafety(request: OutgoingRequest): Reply {
  const sent = JSON.stringify(sentTo(request))
  const isAttack = sent.includes('attack')
  if (request.path.includes(':detectJailbreak'))
    return jsonReply({ jailbreakAnalysis: { detected: isAttack } })
  if (request.path.includes(':shieldPrompt')) {
    return sent.startsWith('{"userPrompt"')
      ? jsonReply({ userPromptAnalysis: { attackDetected: isAttack }, documentsAnalysis: [] })
      : jsonReply({ documentsAnalysis: [{ attackDetected: isAttack }] })
  }
  const match = { blocklistName: 'words', blocklistItemId: '1', blocklistItemText: 'slur' }
  return jsonReply({
    blocklistsMatch: sent.includes('slur') ? [match] : [],
    categoriesAnalysis: ['Hate', 'SelfHarm', 'Sexual', 'Violence'].map((category) => ({
      category,
      severity: category === 'Hate' && sent.includes('bad') ? 4 : 0,
    })),
  })
}

async function ask(config: Partial<AzureContentSafetyConfig>, request: object, answer = contentSafety) {
  const guard = { azureContentSafety: { endpoint, policies, ...config } }
  const guards = fixtureGuards({ request: [guard] }, answer)
  return { ...(await pass(guards, { request })), calls: guards.calls }
}

describe('azureContentSafety', () => {
  it('analyzes the texts with the key of the resource', async () => {
    const analyzeText = { blocklistNames: ['words'], haltOnBlocklistHit: true }
    const { status, calls } = await ask({ analyzeText }, chat('fine'))
    expect(status).toBe(200)
    expect(calls[0]).toMatchObject({
      origin: `https://${endpoint}:443`,
      path: '/contentsafety/text:analyze?api-version=2024-09-01',
      headers: { 'ocp-apim-subscription-key': 'azure-canary' },
    })
    expect(calls[0]?.headers['authorization']).toBeUndefined()
    expect(sentTo(calls[0])).toEqual({ text: 'fine', blocklistNames: ['words'], haltOnBlocklistHit: true })
  })

  it.each([
    ['bad', { analyzeText: {} }, 'Hate: severity 4'],
    ['bad', { analyzeText: { severityThreshold: 5 } }, undefined],
    ['slur', { analyzeText: { blocklistNames: ['words'] } }, 'blocklist: words'],
    ['attack', { detectJailbreak: {} }, 'jailbreak detected'],
    ['attack', { promptShields: {} }, 'attack in a prompt'],
    ['fine', { analyzeText: {}, detectJailbreak: {}, promptShields: {} }, undefined],
  ])('decides on "%s" with %j: %s', async (content, config, reason) => {
    const { status, exchange, text } = await ask(config, chat(content))
    expect(status).toBe(reason === undefined ? 200 : 403)
    expect(exchange.guards?.[0]?.reason).toBe(reason)
    expect(text).not.toContain('canary')
  })

  it('shields results of tools as documents', async () => {
    const { exchange, calls } = await ask({ promptShields: {} }, chat('attack', 'tool'))
    expect(sentTo(calls[0])).toEqual({ documents: ['attack'] })
    expect(exchange.guards?.[0]?.reason).toBe('attack in a document')
  })

  it('splits texts at the limits of the service', async () => {
    const { calls } = await ask({ analyzeText: {}, detectJailbreak: {} }, chat('🙂 '.repeat(4_000)))
    const lengths = calls.map((call) => String(Object(sentTo(call)).text).length)
    expect(calls.map(({ path }) => path.split('?')[0])).toContain('/contentsafety/text:detectJailbreak')
    expect(Math.max(...lengths.slice(0, 2))).toBeLessThanOrEqual(10_000)
    expect(Math.max(...lengths.slice(2))).toBeLessThanOrEqual(1_000)
    expect((await ask({ detectJailbreak: {} }, chat('x'.repeat(200_000)))).status).toBe(503)
  })

  it.each([
    ['no analysis', { analyzeText: {} }, {}],
    ['a category without severity', { analyzeText: {} }, { categoriesAnalysis: [{ category: 'Hate' }] }],
    ['no detection', { detectJailbreak: {} }, { jailbreakAnalysis: {} }],
    ['no shield', { promptShields: {} }, { userPromptAnalysis: null }],
    ['text', { analyzeText: {} }, 'busy'],
  ])('fails for a response with %s', async (_, config, response) => {
    expect((await ask(config, chat('fine'), () => jsonReply(response))).status).toBe(503)
  })

  it('uses the identity of the environment without a credential', async () => {
    const guards = () =>
      fixtureGuards({ request: [{ azureContentSafety: { endpoint, analyzeText: {} } }] }, contentSafety)
    expect((await pass(guards(), { request: chat('fine') })).status).toBe(503)
  })

  it('refuses a guard without analysis, and analyses of requests in response guards', () => {
    const found: string[] = []
    const report = (path: readonly (string | number)[], message: string) =>
      found.push(`${path.join('.')}: ${message}`)
    checkAzureContentSafety({ endpoint: 'a b' }, 'request', report)
    checkAzureContentSafety({ endpoint, analyzeText: {}, detectJailbreak: {} }, 'response', report)
    expect(found).toEqual([
      'endpoint: must be a host, host:port or an https:// address without query',
      ': must have analyzeText, detectJailbreak or promptShields',
      'detectJailbreak: is only valid in request guards',
    ])
  })
})
