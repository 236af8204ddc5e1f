import type { Path } from '../../../../schema/path.ts'
import { secretText } from '../../../objects/secret-text.ts'
import { credentialKey } from '../../../own-kinds/backend-settings.ts'
import type { AuthPolicy, TlsPolicy } from '../../../own-kinds/gateway-policy/backend.ts'
import type { Found, Lookups } from '../lookups.ts'
import { type Field, type FieldKind, fieldOf } from './field.ts'
import { secretProblem } from './secret-problem.ts'

type Problem = Pick<Field, 'mistakes' | 'unresolved'>

/** A text of another object, or the problem with it. */
type Text = { readonly text: string; readonly problem?: undefined } | { readonly problem: Problem }

const tlsPath: Path = ['backend', 'tls']
const authPath: Path = ['backend', 'auth']

/** `backend.tls`. */
export const tlsField: FieldKind = {
  path: 'backend.tls',
  traffic: ['http', 'llm'],
  levels: 'mostSpecific',
  translate({ backend }, lookups) {
    return backend?.tls && translateTls(backend.tls, lookups)
  },
}

function translateTls(tls: TlsPolicy, lookups: Lookups): Field {
  const { caCertificateRefs = [], clientCertificateRef, insecureSkipVerify, ...names } = tls
  const authorities = caCertificateRefs.map((reference, index): Text => {
    const { name } = reference
    const path = [...tlsPath, 'caCertificateRefs', index]
    if (reference.kind === 'Secret')
      return textOf(lookups.secret({ name }), (secret) => secretText(secret, 'ca.crt'), path, 'ca.crt')
    return textOf(lookups.configMap(name), ({ data }) => data?.['ca.crt'], path, 'ca.crt')
  })
  const certificate = ['tls.crt', 'tls.key'].flatMap((key): Text[] => {
    if (clientCertificateRef === undefined) return []
    const path = [...tlsPath, 'clientCertificateRef']
    return [textOf(lookups.secret(clientCertificateRef), (secret) => secretText(secret, key), path, key)]
  })
  const texts = authorities.flatMap((found) => (found.problem === undefined ? [found.text] : []))
  const [cert, key] = certificate.flatMap((found) => (found.problem === undefined ? [found.text] : []))
  const backendTLS = {
    ...names,
    ...(texts.length > 0 && { root: { inline: texts.join('\n') } }),
    ...(cert !== undefined && key !== undefined && { cert: { inline: cert }, key: { inline: key } }),
    ...(insecureSkipVerify !== undefined && { insecure: insecureSkipVerify }),
  }
  const field = fieldOf({ backendTLS }, { place: ['backendTLS'], path: tlsPath, rename: renameTls })
  return withProblems(field, [...authorities, ...certificate])
}

const tlsNames: Readonly<Record<string, string>> = {
  root: 'caCertificateRefs',
  cert: 'clientCertificateRef',
  key: 'clientCertificateRef',
  insecure: 'insecureSkipVerify',
}

function renameTls([first, ...rest]: Path): Path {
  const renamed = tlsNames[first ?? '']
  return renamed === undefined ? [first ?? '', ...rest] : [renamed]
}

/** `backend.auth`. */
export const authField: FieldKind = {
  path: 'backend.auth',
  traffic: ['http', 'llm'],
  levels: 'mostSpecific',
  translate({ backend }, lookups) {
    return backend?.auth && translateAuth(backend.auth, lookups)
  },
}

function translateAuth({ secretRef, location }: AuthPolicy, lookups: Lookups): Field {
  const place = { place: ['backendAuth'], path: authPath, rename: () => ['secretRef'] }
  const common = location && { location }
  if (secretRef === undefined) return fieldOf({ backendAuth: { passthrough: {}, ...common } }, place)
  const { key = credentialKey, ...reference } = secretRef
  const path = [...authPath, 'secretRef']
  const found = textOf(lookups.secret(reference), (secret) => secretText(secret, key), path, key)
  if (found.problem !== undefined) return withProblems(fieldOf({}, place), [found])
  return fieldOf({ backendAuth: { key: credentialOf(found.text), ...common } }, place)
}

/** The location adds a prefix of its own. */
function credentialOf(text: string): string {
  return text.trim().replace(/^bearer +/i, '')
}

function textOf<T>(found: Found<T>, read: (object: T) => string | undefined, path: Path, key: string): Text {
  if (found.kind === 'missing') return { problem: secretProblem(found, path) }
  const text = read(found.object)
  if (text !== undefined && text !== '') return { text }
  return { problem: secretProblem({ reason: 'InvalidRef', message: `the object has no entry ${key}` }, path) }
}

function withProblems(field: Field, texts: readonly Text[]): Field {
  const problems = texts.flatMap(({ problem }) => problem ?? [])
  return {
    ...field,
    mistakes: problems.flatMap(({ mistakes }) => mistakes),
    unresolved: problems.flatMap(({ unresolved }) => unresolved),
  }
}
