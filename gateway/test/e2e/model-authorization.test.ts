import { beforeAll, describe, expect, it } from 'vitest'
import { type Gateway, startGateway } from '../support/gateway.ts'
import { aliceKey, aliceRecord } from '../support/llm-config.ts'

// Rules of single models, also behind virtual models.

let gateway: Gateway

beforeAll(async () => {
  const only = (group: string) => ({ rules: [`apiKey.group == "${group}"`] })
  const target = (model: string, priority: number) => ({ model, priority })
  gateway = await startGateway(
    {
      llm: {
        policies: { apiKey: { keys: [aliceRecord] } },
        models: [
          { name: 'open', provider: 'echo' },
          { name: 'ours', provider: 'echo', authorization: only('platform') },
          { name: 'theirs', provider: 'echo', authorization: only('research') },
          {
            name: 'short',
            provider: 'echo',
            authorization: { rules: [{ deny: 'llmRequest.input.size() > 5' }] },
          },
        ],
        virtualModels: [
          { name: 'mixed', routing: { failover: { targets: [target('open', 0), target('theirs', 1)] } } },
          { name: 'own', routing: { failover: { targets: [target('open', 0), target('ours', 1)] } } },
        ],
      },
    },
    { lifetime: 'file' },
  )
})

async function ask(path: string, body: object): Promise<[number, string]> {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${aliceKey}` }
  const response = await fetch(`${gateway.url}${path}`, {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
  })
  return [response.status, await response.text()]
}

describe('authorization of a model', () => {
  const messages = [{ role: 'user', content: 'hi' }]

  it.each([
    ['open', 200],
    ['ours', 200],
    ['theirs', 403],
    ['own', 200],
    // Any target may serve the request.
    ['mixed', 403],
  ])('decides on a request for %s with %i', async (model, expected) => {
    const [status, text] = await ask('/v1/chat/completions', { model, messages })
    expect(status).toBe(expected)
    expect(text).toContain(expected === 200 ? 'chat.completion' : 'authorization failed')
  })

  it('reads the request, for embeddings as well', async () => {
    expect((await ask('/v1/embeddings', { model: 'short', input: 'abc' }))[0]).toBe(200)
    expect((await ask('/v1/embeddings', { model: 'short', input: 'abcdefgh' }))[0]).toBe(403)
  })

  it('is named in the log and in metrics', async () => {
    await ask('/v1/chat/completions', { model: 'theirs', messages })
    const rule = 'no allow rule holds'
    const lines = await gateway.logged(8)
    expect(lines.map(({ refusedBy }) => refusedBy)).toContain(`authorization: ${rule}`)
    expect(await gateway.metrics()).toContain(`rule="model theirs: ${rule}"`)
  })

  it('is checked as other rules', async () => {
    await gateway
      .reload({
        llm: {
          models: [{ name: 'm', provider: 'echo', authorization: { rules: [{ deny: 'jwt.sub ==' }] } }],
        },
      })
      .catch(() => undefined)
    const { lastError } = await gateway.status()
    expect(lastError).toContain('llm.models[0].authorization.rules[0].deny')
  })
})
