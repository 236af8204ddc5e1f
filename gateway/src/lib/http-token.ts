/** Source of a regular expression for a token of RFC 9110 section 5.6.2. */
export const tokenSource = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"

const tokenPattern = new RegExp(`^${tokenSource}$`)

/** Whether a text is a token of RFC 9110 section 5.6.2, such as a method or the name of a header field. */
export function isToken(text: string): boolean {
  return tokenPattern.test(text)
}

const credentialNames =
  /auth|cookie|key|token|secret|passw|pwd|credential|session|jwt|assertion|oidc|signature|^sec-websocket-protocol$/i

/** Whether values of a header of this name may be credentials; browsers send keys as subprotocols. */
export function isCredentialName(name: string): boolean {
  return credentialNames.test(name)
}
