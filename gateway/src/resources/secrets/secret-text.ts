/** Replacement of a secret in responses and in the log. */
export const mask = '***'

/**
 * Names of members with credentials that the schema does not mark: header fields, free JSON, query
 * parameters.
 */
const credentialName =
  /(?:^|[-_])(?:auth|authorization|cookie|credentials?|passw(?:or)?d|secret|session|signature|token|(?:api|app|application|auth|access|account|encryption|functions?|license|master|private|secret|service|shared|signing|subscription)[-_]?key)$/i
const wordStart = /(?<=[a-z0-9])(?=[A-Z])/g
const queryCredentialName = /^(?:key|code|sig)$/i
/** Members with addresses: every query parameter may be a credential. */
const addressName = /^(?:host|path|url)$/
const credentialValue = /^(?:bearer|basic)\s+[\w+/=.~-]{8,}$/i
/** An argument of a program: `--api-key=value`, `API_KEY=value`. */
const assignment = /^(-{0,2}([\w-]+)=)(?!=).+$/s
const flag = /^--?([\w-]+)$/
const userinfo = /^([a-z][a-z0-9+.-]*:\/\/)[^/?#\s]*@/i
const addressWithQuery = /^(?:[a-z][a-z0-9+.-]*:\/\/|\/)[^\s?#]*\?\S+$/i
const parameter = /([?&])([^&#]+)/g
const maskedPart = /^[a-z][a-z0-9+.-]*:\/\/\*\*\*@|[?&](?:[^=&#?]*=)?\*\*\*(?:[&#]|$)/i

/** Whether members of this name contain credentials; `accessToken` equals `access-token`. */
function namesCredential(name: string): boolean {
  const end = name.slice(-40)
  return credentialName.test(end) || credentialName.test(end.replace(wordStart, '-'))
}

/** The part of a credential assignment before the value. */
function credentialAssigned(text: string): string | undefined {
  const [, start, name = ''] = assignment.exec(text) ?? []
  return namesCredential(name) ? start : undefined
}

/** Masks the secrets in a text; `name` is the name of its member. */
export function maskText(text: string, name: string): string {
  if (text !== '' && (namesCredential(name) || credentialValue.test(text))) return mask
  const assigned = credentialAssigned(text)
  if (assigned !== undefined) return `${assigned}${mask}`
  const address = text.replace(userinfo, `$1${mask}@`)
  if (!addressWithQuery.test(address)) return address
  const hidesAll = addressName.test(name)
  return address.replace(parameter, (whole, start: string, part: string) => {
    const valueAt = part.indexOf('=') + 1
    if (valueAt === part.length) return whole
    const field = part.slice(0, valueAt)
    const isCredential = hidesAll || holdsCredential(field.slice(0, -1))
    return isCredential ? `${start}${field}${mask}` : whole
  })
}

function holdsCredential(parameterName: string): boolean {
  return queryCredentialName.test(parameterName) || namesCredential(parameterName)
}

/** Whether a text contains a secret. */
export function hasSecret(text: string, name: string): boolean {
  return maskText(text, name) !== text
}

/** Whether an item of a list is the value of the preceding flag for a credential: `--token`, `value`. */
export function isFlagValue(list: readonly unknown[], index: number): boolean {
  const before = list[index - 1]
  const name = typeof before === 'string' ? flag.exec(before)?.[1] : undefined
  return name !== undefined && namesCredential(name)
}

/** Whether a text was masked by `maskText`. */
export function isMasked(text: string, name: string): boolean {
  if (text === mask) return namesCredential(name)
  const assigned = credentialAssigned(text)
  return maskedPart.test(text) || (assigned !== undefined && text === `${assigned}${mask}`)
}
