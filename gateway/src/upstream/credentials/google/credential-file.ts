import { isHttpUrl } from '../../../schema/dsl.ts'

/** Fields of a credential, as parsed. */
type Fields = Readonly<Record<string, unknown>>

/** Key of a service account. */
export type ServiceAccountKey = {
  readonly kind: 'service_account'
  readonly email: string
  readonly privateKey: string
  readonly keyId: string | undefined
  readonly tokenUrl: string
}

/** Login of a user. */
export type AuthorizedUser = {
  readonly kind: 'authorized_user'
  readonly clientId: string
  readonly clientSecret: string
  readonly refreshToken: string
  readonly tokenUrl: string
}

/** Source of the token of another identity provider. */
export type SubjectSource = {
  readonly from:
    | { readonly file: string }
    | { readonly url: string; readonly headers: Readonly<Record<string, string>> }
  /** Member of a JSON document with the token; undefined if the whole text is the token. */
  readonly member: string | undefined
}

/** Workload identity federation. */
export type ExternalAccount = {
  readonly kind: 'external_account'
  readonly audience: string
  readonly subjectTokenType: string
  readonly tokenUrl: string
  readonly source: SubjectSource
  readonly client: { readonly id: string; readonly secret: string } | undefined
  readonly impersonation: Impersonation | undefined
}

/** A service account whose tokens another identity may request. */
export type Impersonation = {
  readonly url: string
  readonly delegates: readonly string[]
  readonly lifetimeSeconds: number
}

export type ImpersonatedAccount = {
  readonly kind: 'impersonated_service_account'
  readonly source: ServiceAccountKey | AuthorizedUser
  readonly impersonation: Impersonation
}

/** A credential of Google: https://google.aip.dev/auth/4110 and the records that follow it. */
export type GoogleCredential = ServiceAccountKey | AuthorizedUser | ExternalAccount | ImpersonatedAccount

const defaultTokenUrl = 'https://oauth2.googleapis.com/token'
const defaultStsUrl = 'https://sts.googleapis.com/v1/token'

/** Parses a credential. Throws with the name of the wrong field, never with a value. */
export function parseCredential(text: string): GoogleCredential {
  const fields = parseFields(text)
  switch (fields['type']) {
    case 'service_account':
      return serviceAccount(fields)
    case 'authorized_user':
      return authorizedUser(fields)
    case 'external_account':
      return externalAccount(fields)
    case 'impersonated_service_account':
      return impersonatedAccount(fields)
    default:
      throw new Error(
        'type must be service_account, authorized_user, external_account or impersonated_service_account',
      )
  }
}

function parseFields(text: string): Fields {
  try {
    return objectOf(JSON.parse(text)) ?? {}
  } catch {
    // The message of the parser may contain a part of the text.
    throw new Error('not a credential of Google: expected JSON')
  }
}

function serviceAccount(fields: Fields): ServiceAccountKey {
  const { private_key_id: keyId } = fields
  return {
    kind: 'service_account',
    email: text(fields, 'client_email'),
    privateKey: text(fields, 'private_key'),
    keyId: typeof keyId === 'string' && keyId !== '' ? keyId : undefined,
    tokenUrl: url(fields, 'token_uri', defaultTokenUrl),
  }
}

function authorizedUser(fields: Fields): AuthorizedUser {
  return {
    kind: 'authorized_user',
    clientId: text(fields, 'client_id'),
    clientSecret: text(fields, 'client_secret'),
    refreshToken: text(fields, 'refresh_token'),
    tokenUrl: url(fields, 'token_uri', defaultTokenUrl),
  }
}

function externalAccount(fields: Fields): ExternalAccount {
  const { client_id: id, client_secret: secret, service_account_impersonation: settings } = fields
  const lifetime = objectOf(settings)?.['token_lifetime_seconds']
  const hasImpersonation = fields['service_account_impersonation_url'] !== undefined
  return {
    kind: 'external_account',
    audience: text(fields, 'audience'),
    subjectTokenType: text(fields, 'subject_token_type'),
    tokenUrl: url(fields, 'token_url', defaultStsUrl),
    source: subjectSource(objectOf(fields['credential_source']) ?? {}),
    client: typeof id === 'string' && typeof secret === 'string' ? { id, secret } : undefined,
    impersonation: hasImpersonation ? impersonationOf(fields, lifetime) : undefined,
  }
}

function subjectSource(source: Fields): SubjectSource {
  const format = objectOf(source['format']) ?? {}
  const member = format['type'] === 'json' ? text(format, 'subject_token_field_name') : undefined
  if (typeof source['file'] === 'string') return { from: { file: source['file'] }, member }
  if (typeof source['url'] === 'string' && source['environment_id'] === undefined) {
    const given = Object.entries(objectOf(source['headers']) ?? {})
    const headers = given.flatMap(([name, value]) =>
      typeof value === 'string' ? [[name.toLowerCase(), value]] : [],
    )
    return { from: { url: url(source, 'url', ''), headers: Object.fromEntries(headers) }, member }
  }
  throw new Error('credential_source must have file or url: AWS, programs and certificates are not supported')
}

function impersonatedAccount(fields: Fields): ImpersonatedAccount {
  const source = parseCredential(JSON.stringify(fields['source_credentials'] ?? {}))
  if (source.kind !== 'service_account' && source.kind !== 'authorized_user')
    throw new Error('source_credentials must be of type service_account or authorized_user')
  return { kind: 'impersonated_service_account', source, impersonation: impersonationOf(fields, undefined) }
}

function impersonationOf(fields: Fields, lifetime: unknown): Impersonation {
  const { delegates } = fields
  return {
    url: url(fields, 'service_account_impersonation_url', ''),
    delegates: Array.isArray(delegates) ? delegates.filter((name) => typeof name === 'string') : [],
    lifetimeSeconds: typeof lifetime === 'number' ? lifetime : 3_600,
  }
}

function text(fields: Fields, name: string): string {
  const value = fields[name]
  if (typeof value === 'string' && value !== '') return value
  throw new Error(`${name} must be a text`)
}

function url(fields: Fields, name: string, fallback: string): string {
  const value = fields[name] ?? fallback
  if (typeof value === 'string' && isHttpUrl(value)) return value
  throw new Error(`${name} must be an https URL`)
}

function objectOf(value: unknown): Fields | undefined {
  return typeof value === 'object' && value !== null ? { ...value } : undefined
}
