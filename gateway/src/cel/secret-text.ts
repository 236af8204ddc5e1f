import { hash } from 'node:crypto'

const shown = '<redacted>'

/** Mistake of expressions whose value could be logged or stored, or tests the credential by parts. */
export const revealingMistake =
  'unredacted() is only valid in headers and bodies of requests to backends and services'

/** A credential that logs, JSON and messages show as `<redacted>`. Only `reveal` returns its text. */
export class SecretText {
  readonly #text: string

  constructor(text: string) {
    this.#text = text
  }

  /** The text, for the recipient of the credential only. */
  reveal(): string {
    return this.#text
  }

  toString(): string {
    return shown
  }

  toJSON(): string {
    return this.toString()
  }
}

/** A credential with its digest in place of `<redacted>`, for keys, which must differ between users. */
class ComparableSecret extends SecretText {
  override toString(): string {
    return `sha256:${hash('sha256', this.reveal(), 'hex')}`
  }
}

/** Variables of a key: `token` and `key` of requests are equal only for equal credentials. */
export function withComparableSecrets(variables: object): object {
  const { token, key }: { token?: unknown; key?: unknown } = variables
  return { ...variables, token: comparable(token), key: comparable(key) }
}

function comparable(value: unknown): unknown {
  return value instanceof SecretText ? new ComparableSecret(value.reveal()) : value
}
