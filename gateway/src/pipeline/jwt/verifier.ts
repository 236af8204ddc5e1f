import {
  anyOfShapes,
  enumeration,
  exactlyOne,
  type FieldMeta,
  type Infer,
  list,
  name,
  object,
  optional,
  string,
  url,
} from '../../schema/dsl.ts'
import type { CompileContext } from '../compile-context.ts'
import { parseKeySet } from './key-set.ts'
import { fetchedKeys, fixedKeys, type KeySource } from './key-source.ts'
import { createTokenVerifier, type TokenVerifier } from './token.ts'

/** `jwks`: where the keys are that tokens are checked with. `meta` is what differs from place to place. */
export function keysSchema(meta: Pick<FieldMeta, 'default'> = {}) {
  return anyOfShapes(
    [
      string({ doc: 'Address of the key set, or the key set itself as JSON.' }),
      exactlyOne(
        {
          url: url({ doc: 'Address of the key set.' }),
          file: name({ doc: 'Path of a file that holds the key set, read when the configuration is.' }),
          inline: string({ doc: 'The key set as JSON.' }),
        },
        {},
        { doc: 'Where the keys are.' },
      ),
    ],
    { doc: 'The keys that sign tokens (RFC 7517).', example: 'https://id.example.com/keys', ...meta },
  )
}

export type KeysConfig = Infer<ReturnType<typeof keysSchema>>

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
  jwks: KeysConfig | undefined
  jwtValidationOptions: Infer<typeof validationOptionsSchema> | undefined
}

type Report = (path: (string | number)[], message: string) => void

/** Reports key sets that are none. */
export function checkKeys(jwks: KeysConfig, report: Report) {
  if (typeof jwks === 'string') {
    if (isInline(jwks)) return checkKeySet(jwks, (message) => report([], message))
    if (!isHttpUrl(jwks)) report([], 'expected an address (https://...) or a key set as JSON ({...})')
    return
  }
  if (jwks.inline !== undefined) checkKeySet(jwks.inline, (message) => report(['inline'], message))
}

const defaultRequiredClaims = ['exp'] as const

/**
 * The verifier of tokens by `config`, with keys from `derivedUrl` where it names none. Keys and verified tokens outlive
 * reloads, and all that check the same tokens by the same keys share them. Throws when a file or an inline key set is
 * of no use.
 */
export function compileVerifier(
  config: VerifierConfig,
  context: CompileContext,
  derivedUrl?: string,
): TokenVerifier {
  const { issuer, audiences, jwks, jwtValidationOptions } = config
  const rules = {
    issuer,
    audiences,
    requiredClaims: jwtValidationOptions?.requiredClaims ?? defaultRequiredClaims,
  }
  const text = jwks === undefined ? undefined : givenKeys(jwks, context)
  const address = text === undefined ? (addressOf(jwks) ?? derivedUrl) : undefined
  // Verified tokens belong to the rules and the keys they were verified by, not to the rest of the configuration.
  const name = `tokens: ${JSON.stringify([rules, address ?? text])}`
  return context.keep(name, () =>
    createTokenVerifier(keySource(text, address, context), rules, context.clock),
  )
}

function keySource(
  text: string | undefined,
  address: string | undefined,
  context: CompileContext,
): KeySource {
  if (address !== undefined)
    return context.keep(`keys of tokens: ${address}`, () => fetchedKeys(address, context))
  const set = parseKeySet(text ?? '')
  if (set === undefined) throw new Error('jwks is not a JSON Web Key Set')
  if (set.size === 0) throw new Error('jwks holds no key that can verify tokens')
  return fixedKeys(set)
}

/** The key set where the configuration holds it or names its file; undefined where it is at an address. */
function givenKeys(jwks: KeysConfig, { readFile }: CompileContext): string | undefined {
  if (typeof jwks === 'string') return isInline(jwks) ? jwks : undefined
  if (jwks.file !== undefined) return readFile(jwks.file)
  return jwks.inline
}

function addressOf(jwks: KeysConfig | undefined): string | undefined {
  return typeof jwks === 'string' ? jwks : jwks?.url
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
