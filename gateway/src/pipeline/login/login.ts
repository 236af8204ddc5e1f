/** Session that a browser continues with a cookie. */
export type LoginSession = {
  /** Path that ends the session. */
  readonly logoutPath?: string | undefined
  /** Absolute end, in milliseconds since the epoch. */
  readonly endsAt?: number | undefined
  /** Whether a logout has ended the session before that. */
  isEnded?(): boolean
  /** Values of `set-cookie` for the reply. */
  readonly setCookies?: readonly string[] | undefined
}

/** Effect of a call of the admin API. */
export type UiFacts = {
  /** The call changes something, or returns secrets in clear. */
  readonly change: boolean
}
