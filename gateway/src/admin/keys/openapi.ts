import { body, type OpenApiPart, queryParameters, ref, responses } from '../../resources/api/openapi-part.ts'
import type { keyQueryParameters } from './key-list.ts'

const id = { name: 'id', in: 'path', required: true, schema: { type: 'string' } }
const text = { type: 'string' }
const time = { type: 'string', format: 'date-time' }
const texts = { type: 'array', items: text }

const descriptions: Readonly<Record<(typeof keyQueryParameters)[number], string>> = {
  search: 'Part of the id, name, user or group, in any case.',
  state: '`active`, `expired` or `disabled`.',
  sort: '`id` (default), `name`, `user`, `group` or `expiresAt`, with a leading `-` for descending order.',
  limit: 'Maximum number of keys, from 1 to 1000; default 100.',
  cursor: '`nextCursor` of the previous page.',
}

/** OpenAPI of the endpoints of virtual keys. */
export const keysOpenApi: OpenApiPart = {
  paths: {
    '/api/keys': {
      get: {
        summary: 'Virtual keys of all scopes, without the keys themselves.',
        parameters: queryParameters(descriptions),
        responses: responses({
          type: 'object',
          properties: { keys: { type: 'array', items: ref('VirtualKey') }, nextCursor: text },
        }),
      },
    },
    '/api/keys/{id}': {
      get: {
        summary: 'A virtual key with its usage of the last 30 days.',
        parameters: [id],
        responses: responses(ref('VirtualKey')),
      },
    },
    '/api/keys/{id}/rotate': {
      post: {
        summary: 'Replaces the secret of a virtual key. Only this response contains the new one.',
        parameters: [id, { name: 'if-match', in: 'header', schema: text }],
        requestBody: body({
          type: 'object',
          properties: {
            overlap: {
              ...text,
              description: 'Time for which earlier secrets stay valid; `0` ends them at once.',
              default: '24h',
            },
          },
        }),
        responses: responses({
          type: 'object',
          properties: { id: text, key: text, previousKeysExpireAt: time, revision: { type: 'integer' } },
        }),
      },
    },
  },
  schemas: {
    VirtualKey: {
      type: 'object',
      properties: {
        id: text,
        scope: { ...text, description: 'Scope with the key: `llm`, `gateway default`.' },
        source: { enum: ['file', 'database', 'object'] },
        state: { enum: ['active', 'expired', 'disabled'] },
        name: text,
        user: text,
        group: text,
        metadata: { type: 'object' },
        expiresAt: time,
        disabled: { type: 'boolean' },
        allowedModels: texts,
        allowedTargets: texts,
        limits: { type: 'array', items: { type: 'object' } },
        budgets: { type: 'array', items: { type: 'object' } },
        previousKeys: {
          type: 'array',
          description: 'Earlier secrets that are still valid.',
          items: { type: 'object', properties: { expiresAt: time } },
        },
        revision: { type: 'integer' },
        createdAt: time,
        updatedAt: time,
        lastUsedAt: { ...time, description: 'Absent without a request in the ledger.' },
        usage: {
          type: 'object',
          description:
            'Sums of the last 30 days; absent without a ledger. `cost` is a decimal in US dollars.',
        },
      },
    },
  },
}
