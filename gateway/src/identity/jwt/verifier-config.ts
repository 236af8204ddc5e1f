import type { EgressPolicy } from '../../net/egress/egress.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import {
  anyOfShapes,
  enumeration,
  exactlyOne,
  type FieldMeta,
  filePath,
  type Infer,
  isHttpUrl,
  list,
  object,
  optional,
  string,
  url,
} from '../../schema/dsl.ts'
import type { ReportIssue } from '../../schema/report.ts'
import { sendUnder } from '../../upstream/egress.ts'
import { parseKeySet } from './key-set.ts'
import {
  createLocalKeySource,
  createRemoteKeySource,
  fixedJwksUri,
  type JwksUri,
  type KeySource,
} from './key-source.ts'
import { createTokenVerifier, type TokenVerifier } from './token-verifier.ts'

/** Schema of `jwks`, the keys that verify tokens. `meta` adds metadata of the field. */
export function jwksSchema(meta: Pick<FieldMeta, 'default'> = {}) {
  return anyOfShapes(
    [
      string({ doc: 'Address of the key set, or the key set as JSON.' }),
      exactlyOne(
        {
          url: url({ doc: 'Address of the key set.' }),
          file: filePath({
            doc: 'Path of a file that contains the key set, read with the configuration.',
            holds: 'keySet',
          }),
          inline: string({ doc: 'The key set as JSON.' }),
        },
        {},
        { doc: 'Source of the key set.' },
      ),
    ],
    {
      doc: 'JSON Web Key Set that verifies tokens (RFC 7517).',
      example: 'https://id.example.com/keys',
      ...meta,
    },
  )
}

export type JwksConfig = Infer<ReturnType<typeof jwksSchema>>

export const validationOptionsSchema = object(
  {
    requiredClaims: optional(
      list(
        enumeration(['exp', 'nbf', 'aud', 'iss', 'sub'], {
          doc: 'Name of a claim. `iss` and `aud` are always required.',
        }),
        { doc: 'Claims that a token must have.', default: ['exp'] },
      ),
    ),
  },
  { doc: 'Token validation.' },
)

/** Settings of token verification for one issuer. */
export type VerifierConfig = {
  issuer: string
  /** Undefined accepts any audience. */
  audiences: readonly string[] | undefined
  jwks: JwksConfig | undefined
  jwtValidationOptions: Infer<typeof validationOptionsSchema> | undefined
  /** Configuration object with the issuer and the keys, for its egress policy. */
  node: object
}

/** Reports invalid key sets. */
export function checkJwks(jwks: JwksConfig, report: ReportIssue) {
  if (typeof jwks === 'string') {
    if (isInline(jwks)) return checkKeySet(jwks, (message) => report([], message))
    if (!isHttpUrl(jwks)) report([], 'must be an address (https://...) or a key set as JSON ({...})')
    return
  }
  if (jwks.inline !== undefined) checkKeySet(jwks.inline, (message) => report(['inline'], message))
}

const defaultRequiredClaims = ['exp'] as const

/**
 * Compiles the verifier of `config`, with keys from `derived` if `jwks` is unset. Keys and verified tokens
 * survive reloads, and equal verifiers share them. Throws if a file or an inline key set is unusable.
 */
export function compileVerifier(
  config: VerifierConfig,
  context: CompileContext,
  derived?: JwksUri,
): TokenVerifier {
  const { issuer, audiences, jwks, jwtValidationOptions, node } = config
  const rules = {
    issuer,
    audiences,
    requiredClaims: jwtValidationOptions?.requiredClaims ?? defaultRequiredClaims,
  }
  const text = jwks === undefined ? undefined : localKeySetText(jwks, context)
  const address = text === undefined ? (configuredJwksUri(jwks) ?? derived) : undefined
  // Verified tokens depend on rules and keys only, not on the rest of the configuration.
  const egress = address?.isDiscovered === true ? context.egress.document : context.egress.of(node)
  const name = `tokens: ${JSON.stringify([rules, address?.name ?? text, egress.key])}`
  return context.retained(name, () =>
    createTokenVerifier(createKeySource(text, address, egress, context), rules, context.clock),
  )
}

function createKeySource(
  text: string | undefined,
  address: JwksUri | undefined,
  egress: EgressPolicy,
  context: CompileContext,
): KeySource {
  if (address !== undefined) {
    const send = sendUnder(egress, context.send)
    const name = `keys of tokens: ${address.name} ${egress.key}`
    return context.retained(name, () => createRemoteKeySource(name, address, { ...context, send }))
  }
  const set = parseKeySet(text ?? '')
  if (set === undefined) throw new Error('jwks must be a JSON Web Key Set')
  if (set.size === 0) throw new Error('jwks must contain a key that can verify tokens')
  return createLocalKeySource(set)
}

/** Key set text from the configuration or its file; undefined for a key set at a URL. */
function localKeySetText(jwks: JwksConfig, { readFile }: CompileContext): string | undefined {
  if (typeof jwks === 'string') return isInline(jwks) ? jwks : undefined
  if (jwks.file !== undefined) return readFile(jwks.file)
  return jwks.inline
}

function configuredJwksUri(jwks: JwksConfig | undefined): JwksUri | undefined {
  const url = typeof jwks === 'string' ? jwks : jwks?.url
  return url === undefined ? undefined : fixedJwksUri(url)
}

function isInline(text: string): boolean {
  return text.trimStart().startsWith('{')
}

function checkKeySet(text: string, report: (message: string) => void) {
  const set = parseKeySet(text)
  if (set === undefined) return report('must be a JSON Web Key Set: {"keys": [...]}')
  if (set.size === 0)
    report('must contain a key that can verify tokens: RSA from 2048 bits, EC P-256/384/521 or Ed25519')
}
