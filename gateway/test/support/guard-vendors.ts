import type { Lifetime } from './cleanup.ts'
import {
  type Answer,
  type MockServer,
  member,
  type SeenRequest,
  sendJson,
  startMockServer,
} from './mock-server.ts'

// Doubles of guard services, by their published schemas. Texts decide: `bad` is harmful, `attack` an attack.

/** The moderation of OpenAI; 401 without its key. */
export function mockModeration(key: string, lifetime: Lifetime = 'test'): Promise<MockServer> {
  return startMockServer(({ path, headers, json }, response) => {
    if (headers.authorization !== `Bearer ${key}`) {
      const message = `Incorrect API key provided: ${headers.authorization}`
      sendJson(response, { status: 401, body: { error: { message, type: 'invalid_request_error' } } })
      return
    }
    if (path !== '/v1/moderations') throw new Error(`no such path: ${path}`)
    const input = member(json, 'input')
    const results = (Array.isArray(input) ? input : [input]).map((text) => {
      const flagged = String(text).includes('bad')
      const categories = { harassment: flagged, 'harassment/threatening': false, violence: flagged }
      const scores = Object.fromEntries(
        Object.entries(categories).map(([name, is]) => [name, is ? 0.9 : 0.01]),
      )
      return { flagged, categories, category_scores: scores }
    })
    sendJson(response, { status: 200, body: { id: 'modr-1', model: member(json, 'model'), results } })
  }, lifetime)
}

/** Azure AI Content Safety; 401 without its key. */
export function mockContentSafety(key: string, lifetime: Lifetime = 'test'): Promise<MockServer> {
  return startMockServer((request, response) => {
    if (request.headers['ocp-apim-subscription-key'] !== key) {
      const message = 'Access denied due to invalid subscription key or wrong API endpoint.'
      sendJson(response, { status: 401, body: { error: { code: '401', message } } })
    } else sendJson(response, { status: 200, body: contentSafetyOf(request) })
  }, lifetime)
}

function contentSafetyOf({ path, json, text }: SeenRequest): object {
  const attackDetected = text.includes('attack')
  switch (path) {
    case '/contentsafety/text:analyze?api-version=2024-09-01': {
      const severity = String(member(json, 'text')).includes('bad') ? 4 : 0
      const categories = ['Hate', 'SelfHarm', 'Sexual', 'Violence']
      return {
        blocklistsMatch: [],
        categoriesAnalysis: categories.map((category) => ({
          category,
          severity: category === 'Violence' ? severity : 0,
        })),
      }
    }
    case '/contentsafety/text:shieldPrompt?api-version=2024-09-01':
      return { userPromptAnalysis: { attackDetected }, documentsAnalysis: [] }
    default:
      throw new Error(`no such path: ${path}`)
  }
}

/** Model Armor; 401 without its token. */
export function mockModelArmor(token: string, lifetime: Lifetime = 'test'): Promise<MockServer> {
  return startMockServer(({ path, headers, text }, response) => {
    if (headers.authorization !== `Bearer ${token}`) {
      const error = {
        code: 401,
        message: 'Request had invalid authentication credentials.',
        status: 'UNAUTHENTICATED',
      }
      sendJson(response, { status: 401, body: { error } })
      return
    }
    if (
      !/^\/v1\/projects\/p\/locations\/us-central1\/templates\/t:sanitize(?:UserPrompt|ModelResponse)$/.test(
        path,
      )
    )
      throw new Error(`no such path: ${path}`)
    const matchState = text.includes('bad') ? 'MATCH_FOUND' : 'NO_MATCH_FOUND'
    const filterResults = { rai: { raiFilterResult: { executionState: 'EXECUTION_SUCCESS', matchState } } }
    const result = { filterMatchState: matchState, invocationResult: 'SUCCESS', filterResults }
    sendJson(response, { status: 200, body: { sanitizationResult: result } })
  }, lifetime)
}

/** Guardrails of Bedrock: names are anonymized; 403 without a signature of the key. */
export function mockBedrockGuardrails(keyId: string, lifetime: Lifetime = 'test'): Promise<MockServer> {
  return startMockServer(({ path, headers, json }, response) => {
    const signature = new RegExp(
      `^AWS4-HMAC-SHA256 Credential=${keyId}/\\d{8}/eu-central-1/bedrock/aws4_request, ?SignedHeaders=[\\w;-]+, ?Signature=[0-9a-f]{64}$`,
    )
    if (!signature.test(String(headers.authorization))) {
      sendJson(response, { status: 403, body: { message: `not a signature: ${headers.authorization}` } })
      return
    }
    if (path !== '/guardrail/gr1/version/1/apply') throw new Error(`no such path: ${path}`)
    const content = member(json, 'content')
    const texts = (Array.isArray(content) ? content : []).map((block) =>
      String(member(block, 'text', 'text')),
    )
    sendJson(response, { status: 200, body: guardrailOf(texts) })
  }, lifetime)
}

function guardrailOf(texts: readonly string[]): object {
  const action = 'GUARDRAIL_INTERVENED'
  if (texts.some((text) => text.includes('bad'))) {
    const topicPolicy = { topics: [{ name: 'topic', type: 'DENY', action: 'BLOCKED' }] }
    return { action, outputs: [{ text: 'Blocked.' }], assessments: [{ topicPolicy }] }
  }
  if (!texts.some((text) => text.includes('Ann'))) return { action: 'NONE', outputs: [], assessments: [] }
  const piiEntities = [{ type: 'NAME', match: 'Ann', action: 'ANONYMIZED' }]
  return {
    action,
    outputs: texts.map((text) => ({ text: text.replaceAll('Ann', '{NAME}') })),
    assessments: [{ sensitiveInformationPolicy: { piiEntities } }],
  }
}

/** Presidio: analyzer and anonymizer in one server. Mail addresses are found, with offsets in code points. */
export function mockPresidio(lifetime: Lifetime = 'test'): Promise<MockServer> {
  return startMockServer(({ path, json }, response) => {
    const text = String(member(json, 'text'))
    const points = (end: number) => [...text.slice(0, end)].length
    if (path !== '/analyze') throw new Error(`no such path: ${path}`)
    const body = [...text.matchAll(/\w+@\w+\.\w+/g)].map(({ index, 0: match }) => ({
      analysis_explanation: null,
      end: points(index + match.length),
      entity_type: 'EMAIL_ADDRESS',
      recognition_metadata: {
        recognizer_identifier: 'EmailRecognizer_1',
        recognizer_name: 'EmailRecognizer',
      },
      score: 1,
      start: points(index),
    }))
    sendJson(response, { status: 200, body })
  }, lifetime)
}

/** Faults of services: each must fail the check. */
export const serviceFaults: Readonly<Record<string, Answer>> = {
  garbage: (_, response) => response.writeHead(200).end('<html>busy</html>'),
  huge: (_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(`{"results":"${'x'.repeat(4_000_000)}"}`)
  },
  throttled: (_, response) => {
    sendJson(response, { status: 429, body: { error: { code: '429' } }, headers: { 'retry-after': '30' } })
  },
  hanging: () => {},
  'cut off': (_, response) => {
    response.writeHead(200, { 'content-length': '100' })
    response.write('{"results":', () => response.destroy())
  },
}
