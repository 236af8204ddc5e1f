import { isPostgresUrl } from '../../database/url.ts'
import { type LedgerSections, ledgerSettingsOf } from '../../ledger/config.ts'
import { type Json, type OpenApiPart, responses } from '../../resources/api/openapi-part.ts'
import type { Viewer } from '../../resources/api/request.ts'
import type { AdminEndpoint } from '../api.ts'
import { whoamiPath } from './viewer.ts'

export type ConsoleStorage = {
  readonly mode: 'file' | 'hybrid'
  /** Undefined if records can be changed. */
  readonly readOnlyReason: string | undefined
}

export type WhoamiOptions = {
  readonly version: string
  /** Settings read at start. */
  readonly settings: LedgerSections
  readonly storage: () => ConsoleStorage
}

/** Endpoint of the user of the console: identity, rights, and the parts of the gateway that exist. */
export function whoamiEndpoint({ version, settings, storage }: WhoamiOptions): AdminEndpoint {
  const ledger = ledgerSettingsOf(settings)
  const database = kindOfDatabase(settings.database?.url)
  return {
    path: whoamiPath,
    methods: {
      GET: {
        async respond({ request: { viewer } }) {
          const { mode, readOnlyReason: reason } = storage()
          const value = {
            version,
            ...userOf(viewer, reason !== undefined),
            storage: { mode, readOnly: reason !== undefined, reason, database },
            ledger: ledger !== undefined,
            payloads: ledger?.payloads === true,
          }
          return { kind: 'json', value }
        },
      },
    },
  }
}

function kindOfDatabase(url: string | undefined): 'postgres' | 'sqlite' | undefined {
  if (url === undefined) return undefined
  return isPostgresUrl(url) ? 'postgres' : 'sqlite'
}

/** The admin address has no login: each of its clients has all rights. */
function userOf(viewer: Viewer | undefined, isReadOnly: boolean): object {
  if (viewer === undefined) return { login: 'none', mayChange: !isReadOnly, mayReveal: true }
  const { sessionEndsAt } = viewer
  return {
    ...viewer,
    mayChange: viewer.mayChange && !isReadOnly,
    sessionEndsAt: sessionEndsAt === undefined ? undefined : new Date(sessionEndsAt).toISOString(),
  }
}

const text: Json = { type: 'string' }
const flag: Json = { type: 'boolean' }

const whoamiSchema: Json = {
  type: 'object',
  properties: {
    version: text,
    login: { ...text, enum: ['none', 'oidc', 'jwt', 'apiKey', 'basic'] },
    name: text,
    email: text,
    claims: { type: 'object', description: 'Claims of the token or metadata of the key, for display.' },
    mayChange: { ...flag, description: 'Whether rules and storage permit changes.' },
    mayReveal: { ...flag, description: 'Whether rules permit to read secrets in clear.' },
    logoutPath: { ...text, description: 'Path that ends the session.' },
    sessionEndsAt: { ...text, format: 'date-time' },
    storage: {
      type: 'object',
      properties: {
        mode: { ...text, enum: ['file', 'hybrid'] },
        readOnly: flag,
        reason: { ...text, description: 'Reason why the storage is read-only.' },
        database: { ...text, enum: ['sqlite', 'postgres'] },
      },
    },
    ledger: { ...flag, description: 'Whether requests are recorded.' },
    payloads: { ...flag, description: 'Whether the content of requests is recorded.' },
  },
}

export const whoamiOpenApi: OpenApiPart = {
  paths: {
    [whoamiPath]: {
      get: {
        summary: 'The user, their rights, and the parts of the gateway that exist.',
        responses: responses(whoamiSchema),
      },
    },
  },
}
