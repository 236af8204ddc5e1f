import type { ConfigStatus } from '../../config/live/live.ts'
import type { Cancellation } from '../../lib/cancellation.ts'
import type { WorkQueue } from '../../lib/scheduling/work-queue.ts'
import type { YieldPoint } from '../../lib/scheduling/yielding.ts'
import type { Body } from '../../net/http/body.ts'
import type { Headers } from '../../net/http/headers.ts'
import type { RandomBytes } from '../../policies/api-key/new-key.ts'
import type { Log } from '../../telemetry/log.ts'
import type { TextAllowances } from '../file/file-restrictions.ts'
import type { Expand } from '../hybrid/record.ts'
import type { RevisionKey } from '../records/revision.ts'
import type { Requester, Resources } from '../resources.ts'
import type { OpenApiPart } from './openapi-part.ts'

export type ApiRequest = {
  readonly method: string
  /** Path and query, as sent. */
  readonly target: string
  readonly headers: Headers
  readonly body: Body
  /** Cancelled when the client disconnects before the response is complete; undefined if unknown. */
  readonly cancellation?: Cancellation | undefined
  /** Client address, for the audit log. */
  readonly address: string
  /** Authenticated client, if any. */
  readonly principal?: string | undefined
  /** User of a `ui` gateway, for `GET /api/whoami`. Undefined on the admin address. */
  readonly viewer?: Viewer | undefined
  /** Assigned to changes by the API. */
  readonly requestId?: string | undefined
}

/** User of the console and their rights. Plain data: requests pass threads. */
export type Viewer = {
  readonly login: 'oidc' | 'jwt' | 'apiKey' | 'basic'
  readonly name?: string | undefined
  readonly email?: string | undefined
  /** Claims or metadata for display. */
  readonly claims: { readonly [name: string]: string | readonly string[] }
  readonly mayChange: boolean
  readonly mayReveal: boolean
  readonly logoutPath?: string | undefined
  /** Milliseconds since the epoch. */
  readonly sessionEndsAt?: number | undefined
}

export type ApiOptions = {
  readonly resources: Resources
  readonly allowances: TextAllowances
  /** Expands references to the environment in values. */
  readonly expand: Expand
  readonly status: () => ConfigStatus
  /** State of the ledger; undefined without one. */
  readonly ledger: () => object | undefined
  /** Reads the JSON Schema of the configuration file, which is too large to be retained. */
  readonly readSchema: () => Promise<object>
  readonly version: string
  /** OpenAPI of the other endpoints of the admin API. */
  readonly openApiParts: readonly OpenApiPart[]
  /** Key of the revisions of records of the file. */
  readonly revisionKey: RevisionKey
  /** A new id for a change, returned in `x-request-id`. */
  readonly newRequestId: () => string
  /** Source of generated keys. */
  readonly randomBytes: RandomBytes
  readonly log: Log
  /** Flushes the log: the audit line of a change, or of a read of secrets, is written before the response. */
  readonly flushLog: () => Promise<void>
  /** Parses large bodies in slices. */
  readonly workQueue: WorkQueue
  /** Called between parts of large responses. */
  readonly yieldPoint: YieldPoint
}

export function requesterOf({ address, principal, requestId = '' }: ApiRequest): Requester {
  return { address, principal, requestId }
}
