import type { Path } from '../../../../schema/path.ts'
import { isCredential } from '../../../../upstream/credentials/credential.ts'
import { keyOf } from '../../../objects/meta.ts'
import { secretCredential } from '../../../objects/secret-text.ts'
import type { KeyPair } from '../../../objects/tls-content.ts'
import { credentialKey } from '../../../own-kinds/backend-settings.ts'
import type { AuthPolicy, TlsPolicy } from '../../../own-kinds/gateway-policy/backend.ts'
import { readCa, readKeyPair } from '../../backends/certificates.ts'
import type { Lookups } from '../lookups.ts'
import { type Field, type FieldKind, fieldOf } from './field.ts'
import { secretProblem } from './secret-problem.ts'

export type Problem = Pick<Field, 'mistakes' | 'unresolved'>

/** A part of a field from another object, or the problem with it. */
export type Part<T> = { readonly value: T; readonly problem?: undefined } | { readonly problem: Problem }

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
  const authorities = caCertificateRefs.map(({ kind = 'ConfigMap', name }, index): Part<string> => {
    const path = [...tlsPath, 'caCertificateRefs', index]
    const found = kind === 'Secret' ? lookups.secret({ name }) : lookups.configMap(name)
    if (found.kind === 'missing') return { problem: secretProblem(found, path) }
    const read = readCa(found.object, `${kind} ${keyOf(found.object)}`)
    return read.kind === 'text' ? { value: read.text } : unusable(read.message, path)
  })
  const client = clientCertificateRef && readClient(clientCertificateRef, lookups)
  const texts = authorities.flatMap((part) => (part.problem === undefined ? [part.value] : []))
  const backendTLS = {
    ...names,
    ...(texts.length > 0 && { root: { inline: texts.join('\n') } }),
    ...(client !== undefined && client.problem === undefined && client.value),
    ...(insecureSkipVerify !== undefined && { insecure: insecureSkipVerify }),
  }
  const field = fieldOf({ backendTLS }, { place: ['backendTLS'], path: tlsPath, rename: renameTls })
  return withProblems(field, [...authorities, ...(client === undefined ? [] : [client])])
}

function readClient(reference: ClientReference, lookups: Lookups): Part<KeyPair> {
  const path = [...tlsPath, 'clientCertificateRef']
  const found = lookups.secret(reference)
  if (found.kind === 'missing') return { problem: secretProblem(found, path) }
  const read = readKeyPair(found.object, `Secret ${keyOf(found.object)}`)
  return read.kind === 'pair' ? { value: read.pair } : unusable(read.message, path)
}

type ClientReference = NonNullable<TlsPolicy['clientCertificateRef']>

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
  const key = readCredential(secretRef, [...authPath, 'secretRef'], lookups)
  if (key.problem === undefined) return fieldOf({ backendAuth: { key: key.value, ...common } }, place)
  return withProblems(fieldOf({}, place), [key])
}

type EntryReference = NonNullable<AuthPolicy['secretRef']>

/** Reads a credential of a Secret. */
export function readCredential(reference: EntryReference, path: Path, lookups: Lookups): Part<string> {
  const found = lookups.secret(reference)
  if (found.kind === 'missing') return { problem: secretProblem(found, path) }
  const { key: entry = credentialKey } = reference
  const key = secretCredential(found.object, entry) ?? ''
  if (isCredential(key)) return { value: key }
  const message = `entry ${entry} of Secret ${keyOf(found.object)} must be a credential: printable ASCII without spaces`
  return unusable(message, path)
}

/** The problem of an object whose content does not fit. */
export function unusable(message: string, path: Path): { readonly problem: Problem } {
  return { problem: secretProblem({ reason: 'InvalidRef', message }, path) }
}

function withProblems(field: Field, parts: readonly Part<unknown>[]): Field {
  const problems = parts.flatMap(({ problem }) => problem ?? [])
  return {
    ...field,
    mistakes: problems.flatMap(({ mistakes }) => mistakes),
    unresolved: problems.flatMap(({ unresolved }) => unresolved),
  }
}
