import type { ServerResponse } from 'node:http'
import { AzureOpenAI } from 'openai'
import { beforeAll, beforeEach, expect, it } from 'vitest'
import { type Gateway, startGateway } from '../support/gateway.ts'
import {
  type MockServer,
  type SeenRequest,
  sendEvents,
  sendJson,
  startMockServer,
} from '../support/mock-server.ts'

const version = '2024-10-21'
const key = 'azure-key-canary-81b2'
const tokens = ['eyJ-entra-canary-1', 'eyJ-entra-canary-2']

let entra: MockServer
let azure: MockServer
let gateway: Gateway

const usage = { prompt_tokens: 5, completion_tokens: 2, total_tokens: 7 }
const filters = { hate: { filtered: false, severity: 'safe' } }

/** Answers like a deployment of Azure OpenAI, content filter results included. */
function answerAsAzure({ path, headers, json }: SeenRequest, response: ServerResponse): void {
  const { authorization = '', 'api-key': apiKey } = headers
  if (apiKey !== key && !tokens.includes(authorization.slice('Bearer '.length))) {
    const message = 'Access denied due to invalid subscription key or wrong API endpoint.'
    sendJson(response, { status: 401, body: { error: { code: '401', message } } })
    return
  }
  if ((json as { user?: string }).user === 'quoted') {
    const message = `${authorization} ${apiKey} is not permitted`
    sendJson(response, { status: 403, body: { error: { code: '403', message } } })
    return
  }
  const deployment = /^\/openai\/deployments\/([^/]+)\/chat\/completions\?api-version=2024-10-21$/.exec(
    path,
  )?.[1]
  if (deployment !== 'gpt-4o') {
    const error = {
      code: 'DeploymentNotFound',
      message: 'The API deployment for this resource does not exist.',
    }
    sendJson(response, { status: 404, body: { error } })
    return
  }
  const head = { id: 'chatcmpl-1', created: 1, model: 'gpt-4o-2024-08-06', system_fingerprint: 'fp_1' }
  const { stream } = json as { stream?: boolean }
  if (stream !== true) {
    const message = { role: 'assistant', content: 'Hello', refusal: null }
    const choice = {
      index: 0,
      message,
      finish_reason: 'stop',
      logprobs: null,
      content_filter_results: filters,
    }
    const prompt_filter_results = [{ prompt_index: 0, content_filter_results: filters }]
    sendJson(response, {
      status: 200,
      body: {
        ...head,
        object: 'chat.completion',
        prompt_filter_results,
        choices: [choice],
        usage,
      },
    })
    return
  }
  const event = (data: object) => `data: ${JSON.stringify(data)}\n\n`
  const chunk = (delta: object, finish_reason: string | null = null) =>
    event({ ...head, object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason }] })
  // Results of the prompt's filters arrive in a first chunk without id and choices.
  const filtered = event({
    id: '',
    object: '',
    created: 0,
    model: '',
    choices: [],
    prompt_filter_results: [],
  })
  const last = event({ ...head, object: 'chat.completion.chunk', choices: [], usage })
  sendEvents(response, [
    filtered,
    chunk({ role: 'assistant', content: 'Hel' }),
    chunk({ content: 'lo' }),
    chunk({}, 'stop'),
    last,
    'data: [DONE]\n\n',
  ])
}

beforeAll(async () => {
  let issued = 0
  entra = await startMockServer((_, response) => {
    sendJson(response, {
      status: 200,
      body: { access_token: tokens[issued++ % 2], expires_in: 3600, token_type: 'Bearer' },
    })
  }, 'file')
  azure = await startMockServer(answerAsAzure, 'file')
  const params = {
    azureResourceName: 'contoso',
    azureResourceType: 'openAI',
    azureApiVersion: version,
    baseUrl: azure.url,
  }
  gateway = await startGateway(
    {
      llm: {
        models: [
          { name: 'gpt-4o', provider: 'azure', params: { ...params, apiKey: key } },
          { name: 'lost', provider: 'azure', params: { ...params, apiKey: key } },
          { name: 'entra', provider: 'azure', params: { ...params, model: 'gpt-4o' } },
        ],
      },
    },
    {
      lifetime: 'file',
      env: {
        AZURE_AUTHORITY_HOST: entra.url,
        AZURE_TENANT_ID: 'tenant',
        AZURE_CLIENT_ID: 'app',
        AZURE_CLIENT_SECRET: 'secret-canary-77',
      },
    },
  )
})

beforeEach(() => {
  azure.seen.length = 0
})

function post(path: string, body: object): Promise<Response> {
  const headers = { 'content-type': 'application/json' }
  return fetch(gateway.url + path, { method: 'POST', headers, body: JSON.stringify(body) })
}

const question = [{ role: 'user' as const, content: 'Hi' }]

function clientOf(endpoint: string): AzureOpenAI {
  return new AzureOpenAI({ endpoint, apiKey: key, apiVersion: version, maxRetries: 0 })
}

it("gives Azure's SDK the responses of the service", async () => {
  const read = async (client: AzureOpenAI) => {
    const whole = await client.chat.completions.create({ model: 'gpt-4o', messages: question })
    const chunks = []
    const options = { stream: true, stream_options: { include_usage: true } } as const
    for await (const chunk of await client.chat.completions.create({
      model: 'gpt-4o',
      messages: question,
      ...options,
    }))
      chunks.push(chunk)
    return { whole, chunks }
  }
  const through = await read(clientOf(gateway.url))
  expect(through).toEqual(await read(clientOf(azure.url)))
  expect(through.chunks).toHaveLength(5)
})

it("gives Azure's SDK the errors of the service", async () => {
  const read = (client: AzureOpenAI) =>
    client.chat.completions
      .create({ model: 'lost', messages: question })
      .catch(({ status, error }) => ({ status, error }))
  expect(await read(clientOf(gateway.url))).toEqual(await read(clientOf(azure.url)))
})

it('reads the model of a path if the body has none', async () => {
  const path = '/openai/deployments/gpt-4o/chat/completions?api-version=2023-01-01'
  const response = await post(path, { messages: question })
  expect(response.status).toBe(200)
  expect(azure.seen[0]?.json).toEqual({ messages: question, model: 'gpt-4o' })
})

it('serves clients of other APIs with one token of Entra, which no output shows', async () => {
  const messages = { model: 'entra', max_tokens: 5, messages: question, stream: true }
  const read = async () => (await post('/v1/messages', messages)).text()
  const [text] = await Promise.all([read(), read(), read()])
  expect(text).toContain('"text":"Hel"')
  expect(text).toContain('event: message_stop')
  expect(azure.seen.map(({ headers }) => headers.authorization)).toEqual(Array(3).fill(`Bearer ${tokens[0]}`))
  expect(entra.seen).toHaveLength(1)
  await gateway.logged(3)
  const outputs = [gateway.stdout(), gateway.stderr(), await gateway.metrics()].join('\n')
  for (const secret of [...tokens, key, 'secret-canary-77']) expect(outputs).not.toContain(secret)
})

it('shows no credential in errors that quote it, and requests another token after them', async () => {
  for (const [model, expected] of [
    ['entra', 'Bearer [hidden] undefined is not permitted'],
    ['gpt-4o', ' [hidden] is not permitted'],
  ] as const) {
    const response = await post('/v1/chat/completions', { model, messages: question, user: 'quoted' })
    expect(response.status).toBe(403)
    expect(await response.json()).toMatchObject({ error: { message: expected } })
  }
  // The service has refused the token with status 403.
  await post('/v1/chat/completions', { model: 'entra', messages: question })
  expect(azure.seen.at(-1)?.headers.authorization).toBe(`Bearer ${tokens[1]}`)
})
