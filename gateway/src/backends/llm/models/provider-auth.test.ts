import { describe, expect, it } from 'vitest'
import { call, chatBody, completion, fixtureLlm, jsonReply } from '../../../../test/fixtures/llm.ts'
import { runToCompletion } from '../../../lib/scheduling/yielding.ts'
import { anywhere } from '../../../net/egress/egress.ts'
import type { LlmConfig, ModelConfig } from '../config/config.ts'
import { compileLlmSection } from '../llm-section.ts'

const shared = {
  name: 'p',
  provider: 'openai',
  params: { apiKey: 'of-file', baseUrl: 'http://file.test/v1' },
} as const

/** The credential that a model of the config API sends to the provider of the file. */
async function sentBy(record: Partial<ModelConfig>, provider: object = shared) {
  const model: ModelConfig = { name: 'm', provider: { reference: 'p' }, ...record }
  const ofApi = new Set<object>([model, ...Object.values(record).filter((part) => typeof part === 'object')])
  const config = { models: [model], providers: [provider] } as LlmConfig
  const gateway = fixtureLlm(
    (context) => {
      const of = (node: object) => ({ ...anywhere, isOfOperator: !ofApi.has(node) })
      const restricted = { ...context, egress: { ...context.egress, of } }
      return runToCompletion(compileLlmSection(config, restricted, { maxBufferSize: 10_000 }))
    },
    () => jsonReply(completion('hi')),
  )
  const { status } = await call(gateway, { body: { ...chatBody, model: 'm' } })
  return [status, gateway.sent[0]?.origin, gateway.sent[0]?.headers['authorization']]
}

const denied = [502, undefined, undefined]

describe('a model of the config API with a provider of the file', () => {
  it('sends the key of the file to the address of the file', async () => {
    expect(await sentBy({})).toEqual([200, 'http://file.test', 'Bearer of-file'])
  })

  it.each([
    { tls: { insecure: true } },
    { backendTunnel: { proxy: { host: 'other.test:80' } } } as Partial<ModelConfig>,
  ])('is denied with its own %j', async (record) => {
    expect(await sentBy(record)).toEqual(denied)
    const auth = { name: 'p', provider: 'openai', defaults: { auth: { key: 'of-file' } } }
    expect(await sentBy(record, auth)).toEqual(denied)
  })

  it('sends its own key over its own connection', async () => {
    const { apiKey: _, ...params } = shared.params
    const record = { tls: { insecure: true }, auth: { key: 'own' } }
    expect(await sentBy(record, { ...shared, params })).toEqual([200, 'https://file.test', 'Bearer own'])
  })
})
