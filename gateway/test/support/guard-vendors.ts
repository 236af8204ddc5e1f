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
