import type { LimitSnapshot } from '../policies/rate-limit/limit-snapshot.ts'
import { type OpenApiPart, plainGet } from '../resources/api/openapi-part.ts'
import type { AdminEndpoint } from './api.ts'

const path = '/api/limits'

/** Endpoint of the rate limit state, which explains a 429. */
export function limitsEndpoint(read: () => Promise<LimitSnapshot>): AdminEndpoint {
  return { path, methods: { GET: { respond: async () => ({ kind: 'json', value: await read() }) } } }
}

export const limitsOpenApi: OpenApiPart = {
  paths: { [path]: { get: plainGet('State of the rate limits: what is left of each, and until when.') } },
}
