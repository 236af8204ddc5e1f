import { createHash } from 'node:crypto'
import { messageOf } from '../../../lib/thrown.ts'
import type { CompileContext } from '../../../pipeline/compile-context.ts'
import type { AuthorizedRequest, Place } from '../placement.ts'
import { createTokenCache } from '../token-cache.ts'
import type { GoogleAuthConfig } from './config.ts'
import { parseCredential } from './credential-file.ts'
import { compileCredential } from './identity.ts'
import { compileMetadataIdentity } from './metadata.ts'
import { createTokenCall, type RequestGoogleToken, type Wanted } from './token-request.ts'

/** Audiences of one identity. */
const maxTokens = 64

/** Adds a token of the gateway's identity; a promise resolves before the request may be sent. */
export type GoogleAuth = {
  readonly source: 'gateway'
  apply(request: AuthorizedRequest): Promise<void> | undefined
  refused(request: AuthorizedRequest): void
}

/**
 * Compiles `backendAuth.gcp`. `node` is the configuration object whose source determines the egress policy.
 * Throws for unreadable and invalid credentials.
 */
export function compileGoogleAuth(
  config: GoogleAuthConfig,
  { place, node }: { place: Place; node: object },
  context: CompileContext,
): GoogleAuth {
  const credential = readCredential(config, context)
  const request = compileIdentity(credential, node, context)
  // Tokens survive reloads, and equal identities share them.
  const identity = JSON.stringify([credential?.text, context.egress.of(node).key])
  const name = `backends/google/${createHash('sha256').update(identity).digest('base64url')}`
  const cache = context.retained(name, () => createTokenCache(maxTokens, context.clock))
  const { type, audience } = config
  const wantedBy = (outgoing: AuthorizedRequest): Wanted =>
    type === 'idToken' ? { kind: 'id', audience: audience ?? audienceOf(outgoing) } : { kind: 'access' }
  return {
    source: 'gateway',
    apply(outgoing) {
      const wanted = wantedBy(outgoing)
      const token = cache.get(keyOf(wanted), () => request(wanted))
      if (typeof token !== 'string') return token.then((issued) => place(outgoing, issued))
      place(outgoing, token)
      return undefined
    },
    refused: (outgoing) => cache.refuse(keyOf(wantedBy(outgoing))),
  }
}

function keyOf(wanted: Wanted): string {
  return wanted.kind === 'id' ? `id ${wanted.audience}` : 'access'
}

/** `https://` and the host, as Cloud Run expects it. */
function audienceOf({ origin = '' }: AuthorizedRequest): string {
  return `https://${URL.parse(origin)?.hostname ?? ''}`
}

/** Text of a credential, with its place for errors. */
type CredentialText = { readonly text: string; readonly at: string }

function compileIdentity(
  credential: CredentialText | undefined,
  node: object,
  context: CompileContext,
): RequestGoogleToken {
  const call = createTokenCall(node, context)
  if (credential === undefined) return compileMetadataIdentity(call, context)
  try {
    return compileCredential(parseCredential(credential.text), call, context)
  } catch (error) {
    throw new Error(`${credential.at}: ${messageOf(error)}`, { cause: error })
  }
}

/** The configured credential, else that of the environment; undefined for the metadata server. */
function readCredential(
  { credential }: GoogleAuthConfig,
  context: CompileContext,
): CredentialText | undefined {
  if (typeof credential === 'string') return { text: credential, at: 'gcp.credential' }
  const { GOOGLE_APPLICATION_CREDENTIALS: named } = context.environment
  const file = credential?.file ?? named
  if (file) return { text: context.readFile(file), at: credential ? `gcp.credential: ${file}` : file }
  const login = loginFile(context.environment)
  const text = login === undefined ? undefined : readExisting(login, context)
  return login === undefined || text === undefined ? undefined : { text, at: login }
}

/** File of `gcloud auth application-default login`. */
function loginFile({
  CLOUDSDK_CONFIG: folder,
  HOME: home,
}: CompileContext['environment']): string | undefined {
  if (folder) return `${folder}/application_default_credentials.json`
  return home ? `${home}/.config/gcloud/application_default_credentials.json` : undefined
}

function readExisting(path: string, { readFile }: CompileContext): string | undefined {
  try {
    return readFile(path)
  } catch {
    // Most machines have no login: the identity is then the service account of the machine.
    return undefined
  }
}
