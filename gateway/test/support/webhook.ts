import type { Lifetime } from './cleanup.ts'
import {
  type Answer,
  type MockServer,
  member,
  type SeenRequest,
  sendJson,
  startMockServer,
} from './mock-server.ts'

/**
 * A guardrail webhook that behaves as the specification's sample: `block` is rejected, `mask` becomes `****`.
 */
export function mockWebhook(lifetime: Lifetime = 'test'): Promise<MockServer> {
  return startMockServer((request, response) => {
    sendJson(response, { status: 200, body: { action: decide(request) } })
  }, lifetime)
}

/** An answer with this action. */
export function acts(action: unknown): Answer {
  return (_, response) => sendJson(response, { status: 200, body: { action } })
}

/** No answer at all. */
export const hangs: Answer = () => {}

/** The texts that a webhook was shown. */
export function shownTo({ json }: SeenRequest): unknown[] {
  const messages = member(json, 'body', 'messages')
  if (Array.isArray(messages)) return messages.map((message) => member(message, 'content'))
  const choices = member(json, 'body', 'choices')
  return Array.isArray(choices) ? choices.map((choice) => member(choice, 'message', 'content')) : []
}

function decide(request: SeenRequest): object {
  const texts = shownTo(request).map(String)
  const isRequest = request.path === '/request'
  if (isRequest && texts.some((text) => text.includes('block'))) {
    return { body: 'request blocked', status_code: 403, reason: 'Inappropriate content detected' }
  }
  if (!texts.some((text) => text.includes('mask'))) return { reason: null }
  return { body: masked(request), reason: 'Sensitive content detected' }
}

function masked({ json }: SeenRequest): unknown {
  return JSON.parse(JSON.stringify(member(json, 'body')).replaceAll('mask', '****'))
}
