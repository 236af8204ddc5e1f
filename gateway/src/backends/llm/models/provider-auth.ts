import { messageOf } from '../../../lib/thrown.ts'
import type { CompileContext } from '../../../pipeline/compile-context.ts'
import type { SecretSource } from '../../../schema/dsl.ts'
import { type BackendAuthConfig, keyOf, placeOf } from '../../../upstream/credentials/config.ts'
import { isCredential } from '../../../upstream/credentials/credential.ts'
import {
  type Authorize,
  compileAuthorize,
  refuseCredential,
} from '../../../upstream/credentials/credentials.ts'
import type { CredentialUse } from '../../../upstream/credentials/machine-identity/permit.ts'

/** Authentication of the gateway to a provider. */
export type ProviderAuth = {
  /** Undefined to forward the client's credential. */
  readonly credential: string | undefined
  /** The credential accepted by authentication is forwarded. */
  readonly forwardsCredential: boolean
  /** Adds a credential at a configured location in place of the provider's default. */
  readonly authorize: Authorize | undefined
  /** Adds further credentials, beside the key at the provider's default. */
  readonly more: Authorize | undefined
  /** The configured key at either location, which errors of the provider must not show. */
  readonly configuredKey: string | undefined
}

/**
 * Compiles the authentication to a provider. Without a configured location, the provider determines the
 * location of a key. `at` is the configuration key for errors. Throws for unreadable credential files.
 */
export function compileProviderAuth(
  auth: BackendAuthConfig | undefined,
  { at, use, region }: { at: string; use: CredentialUse; region: string | undefined },
  context: CompileContext,
): ProviderAuth {
  const refusal = auth && refuseCredential(auth, use, context)
  if (refusal !== undefined) {
    const none = { configuredKey: undefined, credential: undefined, more: undefined }
    return { ...none, forwardsCredential: false, authorize: refusal }
  }
  const isPlain = auth !== undefined && usesDefaultPlace(auth)
  const key = auth && readSecret(keyOf(auth), at, context)
  return {
    configuredKey: key,
    credential: isPlain ? key : undefined,
    forwardsCredential: isPlain && auth.passthrough !== undefined,
    more:
      isPlain && auth.credentials ? compileAuthorize({ credentials: auth.credentials }, context) : undefined,
    authorize: isPlain ? undefined : compileAuthorize(withRegion(auth, region), context, use),
  }
}

/** The region of a provider applies to addresses without one, such as those of proxies. */
function withRegion(
  auth: BackendAuthConfig | undefined,
  region: string | undefined,
): BackendAuthConfig | undefined {
  if (auth?.aws === undefined || auth.aws.region !== undefined) return auth
  return { ...auth, aws: { ...auth.aws, region } }
}

/** Whether the provider determines the location of the credential. */
function usesDefaultPlace(auth: BackendAuthConfig): boolean {
  return (keyOf(auth) ?? auth.passthrough) !== undefined && placeOf(auth) === undefined
}

/** The credential, read from its file if configured as one. */
function readSecret(
  source: SecretSource | undefined,
  at: string,
  { readFile }: CompileContext,
): string | undefined {
  if (source === undefined || typeof source === 'string') return source
  const place = `${at}: ${source.file}`
  const credential = readCredentialFile(() => readFile(source.file), place).trim()
  if (!isCredential(credential))
    throw new Error(`${place} does not contain a credential: printable ASCII on one line`)
  return credential
}

function readCredentialFile(read: () => string, place: string): string {
  try {
    return read()
  } catch (cause) {
    const reason = messageOf(cause)
    throw new Error(`${place} cannot be read: ${reason}`, { cause })
  }
}
