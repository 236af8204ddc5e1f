import type { ServerResponse } from 'node:http'
import type { Lifetime } from './cleanup.ts'
import { type MockServer, type SeenRequest, sendEvents, sendJson, startMockServer } from './mock-server.ts'

/** Key of the Gemini API, and token of the service account, that the mock accepts. */
export const googleKey = 'AIza-canary-4411'
export const googleToken = 'ya29.canary-7720'

type Fields = Record<string, unknown>

export type MockGoogle = MockServer & {
  /** Tokens that the mock has charged. */
  billed: { input: number; output: number }
}

const models = ['gemini-2.5-flash', 'gemini-3-pro']
const callSignature = Buffer.from('the thoughts of this call: >>??').toString('base64')

/**
 * Answers like the Gemini API, Vertex AI and the token endpoint, from their published schemas. Requests are
 * checked as strictly.
 */
export async function mockGoogle(lifetime: Lifetime = 'file'): Promise<MockGoogle> {
  const billed = { input: 0, output: 0 }
  const server = await startMockServer((request, response) => {
    if (request.path === '/token') sendToken(request, response)
    else answer(request, response, billed)
  }, lifetime)
  return { ...server, billed }
}

function sendToken({ text }: SeenRequest, response: ServerResponse): void {
  const form = new URLSearchParams(text)
  const isGrant = form.get('grant_type') === 'urn:ietf:params:oauth:grant-type:jwt-bearer'
  const body = isGrant
    ? { access_token: googleToken, expires_in: 3599, token_type: 'Bearer' }
    : { error: 'invalid_grant' }
  sendJson(response, { status: isGrant ? 200 : 400, body })
}

function fail(response: ServerResponse, code: number, status: string, message: string): void {
  sendJson(response, { status: code, body: { error: { code, message, status } } })
}

const contentPath =
  /^(?:\/v1(?:beta)?|\/v1\/projects\/team\/locations\/[a-z0-9-]+\/publishers\/google)\/models\/([^/:?]+):(\w+)(\?alt=sse)?$/
const claudePath =
  /^\/v1\/projects\/team\/locations\/global\/publishers\/anthropic\/models\/([^/:?]+):(rawPredict|streamRawPredict)$/

function answer(request: SeenRequest, response: ServerResponse, billed: MockGoogle['billed']): void {
  const { path, headers, json } = request
  const isAllowed =
    headers['x-goog-api-key'] === googleKey || headers.authorization === `Bearer ${googleToken}`
  if (!isAllowed) {
    fail(response, 400, 'INVALID_ARGUMENT', 'API key not valid. Please pass a valid API key.')
    return
  }
  if (claudePath.test(path)) {
    answerAsClaude(path, json as Fields, response)
    return
  }
  const [, model = '', method = '', sse] = contentPath.exec(path) ?? []
  if (!models.includes(model)) {
    fail(response, 404, 'NOT_FOUND', `models/${model} is not found for API version v1beta`)
    return
  }
  const problem = problemOf(json, requestSchema)
  if (problem !== undefined) {
    fail(response, 400, 'INVALID_ARGUMENT', `Invalid JSON payload received. ${problem}`)
    return
  }
  const body = json as Fields
  if (JSON.stringify(body).includes('exhaust')) {
    fail(response, 429, 'RESOURCE_EXHAUSTED', 'Quota exceeded for quota metric.')
    return
  }
  if (method === 'countTokens') {
    sendJson(response, { status: 200, body: { totalTokens: 31 } })
    return
  }
  const events = eventsFor(body, model)
  const isWhole = method === 'generateContent'
  billed.input += 20
  billed.output += 12
  if (isWhole) sendJson(response, { status: 200, body: merged(events) })
  else if (sse === undefined) sendJson(response, { status: 200, body: events })
  else
    sendEvents(
      response,
      events.map((event) => `data: ${JSON.stringify(event)}\r\n\r\n`),
    )
}

type Schema = 'any' | { readonly [name: string]: Schema } | readonly [Schema]

const part: Schema = {
  text: 'any',
  thought: 'any',
  thoughtSignature: 'any',
  inlineData: { mimeType: 'any', data: 'any' },
  fileData: { mimeType: 'any', fileUri: 'any' },
  functionCall: { name: 'any', args: 'any' },
  functionResponse: { name: 'any', response: 'any' },
}
const content: Schema = { role: 'any', parts: [part] }
const requestSchema: Schema = {
  contents: [content],
  systemInstruction: content,
  tools: [
    {
      functionDeclarations: [
        { name: 'any', description: 'any', parameters: 'any', parametersJsonSchema: 'any' },
      ],
    },
  ],
  toolConfig: { functionCallingConfig: { mode: 'any', allowedFunctionNames: 'any' } },
  generationConfig: {
    ...{ temperature: 'any', topP: 'any', topK: 'any', candidateCount: 'any', maxOutputTokens: 'any' },
    ...{ stopSequences: 'any', seed: 'any', presencePenalty: 'any', frequencyPenalty: 'any' },
    ...{ responseMimeType: 'any', responseJsonSchema: 'any', responseLogprobs: 'any', logprobs: 'any' },
    thinkingConfig: { includeThoughts: 'any', thinkingBudget: 'any', thinkingLevel: 'any' },
  },
  safetySettings: 'any',
}

/** Google refuses every unknown name. */
function problemOf(value: unknown, schema: Schema, at = ''): string | undefined {
  if (schema === 'any') return undefined
  if (typeof value !== 'object' || value === null) return `Invalid value at '${at}'`
  if (isListSchema(schema)) {
    if (!Array.isArray(value)) return `Invalid value at '${at}'`
    return value.map((item, index) => problemOf(item, schema[0], `${at}[${index}]`)).find((found) => found)
  }
  for (const [name, member] of Object.entries(value)) {
    const inner = schema[name]
    if (inner === undefined) return `Unknown name "${name}" at '${at}': Cannot find field.`
    const problem = problemOf(member, inner, at === '' ? name : `${at}.${name}`)
    if (problem !== undefined) return problem
  }
  return undefined
}

function isListSchema(schema: Schema): schema is readonly [Schema] {
  return Array.isArray(schema)
}

type Event = {
  candidates: { content: { role: string; parts: Fields[] }; finishReason?: string; index: number }[]
}

/** A call of the first declared function, and after its result the result with the signature of the call. */
function eventsFor(body: Fields, model: string): Fields[] {
  const parts = (body['contents'] as { parts: Fields[] }[]).flatMap((content) => content.parts)
  const result = parts.find(({ functionResponse }) => functionResponse !== undefined)
  const signature = parts.find(({ functionCall }) => functionCall !== undefined)?.['thoughtSignature']
  const [tool] = (body['tools'] ?? []) as { functionDeclarations: { name: string }[] }[]
  const name = tool?.functionDeclarations[0]?.name
  const config = body['generationConfig'] as { thinkingConfig?: { includeThoughts?: boolean } } | undefined
  const thoughts = config?.thinkingConfig?.includeThoughts === true ? [{ text: 'Hmm. ', thought: true }] : []
  const answers: Fields[] =
    result !== undefined
      ? [
          { text: 'It is ' },
          { text: `${JSON.stringify(result['functionResponse'])} ${signature === callSignature}` },
        ]
      : name !== undefined
        ? ['Rome', 'Oslo'].map((city, index) => ({
            functionCall: { name, args: { city } },
            ...(index === 0 ? { thoughtSignature: callSignature } : {}),
          }))
        : [{ text: 'Hel' }, { text: 'lo 🙂' }]
  const all = [...thoughts, ...answers]
  return all.map((made, index) => {
    const isLast = index === all.length - 1
    const usageMetadata = isLast
      ? { promptTokenCount: 20, candidatesTokenCount: 8, thoughtsTokenCount: 4, totalTokenCount: 32 }
      : { promptTokenCount: 20, totalTokenCount: 20 }
    const candidate = { content: { role: 'model', parts: [made] }, index: 0 }
    return {
      candidates: [isLast ? { ...candidate, finishReason: 'STOP' } : candidate],
      usageMetadata,
      modelVersion: model,
      responseId: 'resp-1',
    }
  })
}

function merged(events: Fields[]): Fields {
  const all = events as (Fields & Event)[]
  const last = all.at(-1)
  const parts = all.flatMap(({ candidates }) => candidates.flatMap((candidate) => candidate.content.parts))
  return { ...last, candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP', index: 0 }] }
}

function answerAsClaude(path: string, body: Fields, response: ServerResponse): void {
  const [, model, method] = claudePath.exec(path) ?? []
  // Anthropic's SDK sends the version of its own API.
  const version = body['anthropic_version']
  if ((version !== 'vertex-2023-10-16' && version !== '2026-10-21') || 'model' in body) {
    fail(response, 400, 'INVALID_ARGUMENT', 'anthropic_version: Field required')
    return
  }
  const message = {
    id: 'msg_vrtx_1',
    type: 'message',
    role: 'assistant',
    model,
    content: [{ type: 'text', text: 'Hello' }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 6, output_tokens: 3 },
  }
  if (method === 'rawPredict') {
    sendJson(response, { status: 200, body: message })
    return
  }
  const event = (data: Fields) => `event: ${data['type']}\ndata: ${JSON.stringify(data)}\n\n`
  sendEvents(response, [
    event({ type: 'message_start', message: { ...message, content: [], stop_reason: null } }),
    event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
    event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hello' } }),
    event({ type: 'content_block_stop', index: 0 }),
    event({
      type: 'message_delta',
      delta: { stop_reason: 'end_turn', stop_sequence: null },
      usage: { output_tokens: 3 },
    }),
    event({ type: 'message_stop' }),
  ])
}
