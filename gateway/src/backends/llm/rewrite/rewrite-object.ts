import type { JsonObject } from '../../../lib/json/json.ts'
import type { Endpoint } from '../request/endpoints.ts'

/** Changes a body of an endpoint. Unchanged members retain their identity. */
export type RewriteObject = (object: JsonObject, endpoint: Endpoint) => JsonObject
