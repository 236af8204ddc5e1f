import type { EgressPolicy } from '../../net/egress/egress.ts'
import type { CompileContext } from '../../pipeline/compile-context.ts'
import {
  anyOfShapes,
  enumeration,
  exactlyOne,
  type FieldMeta,
  filePath,
  type Infer,
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

/** `jwks`: where the keys are that tokens are checked with. `meta` is what differs from place to place. */
export function jwksSchema(meta: Pick<FieldMeta, 'default'> = {}) {
  return anyOfShapes(
    [
      string({ doc: 'Address of the key set, or the key set itself as JSON.' }),
      exactlyOne(
        {
          url: url({ doc: 'Address of the key set.' }),
          file: filePath({
            doc: 'Path of a file that holds the key set, read when the configuration is.',
            holds: 'keySet',
          }),
          inline: string({ doc: 'The key set as JSON.' }),
        },
        {},
        { doc: 'Where the keys are.' },
      ),
    ],
    { doc: 'The keys that sign tokens (RFC 7517).', example: 'https://id.example.com/keys', ...meta },
  )
}

export type JwksConfig = Infer<ReturnType<typeof jwksSchema>>

export const validationOptionsSchema = object(
  {
    requiredClaims: optional(
      list(
        enumeration(['exp', 'nbf', 'aud', 'iss', 'sub'], {
          doc: 'A claim. `iss` and `aud` are always required.',
        }),
        { doc: 'Claims without which a token is refused.', default: ['exp'] },
      ),
    ),
  },
  { doc: 'How tokens are checked.' },
)

/** The tokens of one issuer, and what checks them. */
export type VerifierConfig = {
  issuer: string
  /** Undefined accepts tokens for anyone. */
  audiences: readonly string[] | undefined
  jwks: JwksConfig | undefined
  jwtValidationOptions: Infer<typeof validationOptionsSchema> | undefined
  /** The object of the Config that names issuer and keys. */
  node: object
}

/** Reports key sets that are none. */
export function checkJwks(jwks: JwksConfig, report: ReportIssue) {
  if (typeof jwks === 'string') {
    if (isInline(jwks)) return checkKeySet(jwks, (message) => report([], message))
    if (!isHttpUrl(jwks)) report([], 'expected an address (https://...) or a key set as JSON ({...})')
    return
  }
  if (jwks.inline !== undefined) checkKeySet(jwks.inline, (message) => report(['inline'], message))
}

const defaultRequiredClaims = ['exp'] as const

/**
 * The verifier of tokens by `config`, with keys from `derived` where it names none. Keys and verified tokens outlive
 * reloads, and all that check the same tokens by the same keys share them. Throws when a file or an inline key set is
 * of no use.
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
  // Verified tokens belong to the rules and the keys they were verified by, not to the rest of the configuration.
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
    return context.retained(`keys of tokens: ${address.name} ${egress.key}`, () =>
      createRemoteKeySource(address, { ...context, send }),
    )
  }
  const set = parseKeySet(text ?? '')
  if (set === undefined) throw new Error('jwks is not a JSON Web Key Set')
  if (set.size === 0) throw new Error('jwks holds no key that can verify tokens')
  return createLocalKeySource(set)
}

/** The key set where the configuration holds it or names its file; undefined where it is at an address. */
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
  if (set === undefined) return report('not a JSON Web Key Set: expected {"keys": [...]}')
  if (set.size === 0)
    report('holds no key that can verify tokens: RSA from 2048 bits, EC P-256/384/521 or Ed25519')
}

function isHttpUrl(text: string): boolean {
  const protocol = URL.parse(text)?.protocol
  return protocol === 'https:' || protocol === 'http:'
}
