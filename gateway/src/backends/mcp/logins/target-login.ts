import type { Exchange } from '../../../pipeline/exchange.ts'
import type { TargetFailure } from '../message/message.ts'
import type { LoginLinks } from './links.ts'
import type { LoginService } from './login-service.ts'

type Caller = Pick<Exchange, 'auth' | 'facts'>

/** Token of the user of a call. */
export type CallToken =
  | { readonly kind: 'token'; readonly token: string }
  /** The user must sign in, at the address. */
  | { readonly kind: 'none'; readonly url: string }
  | { readonly kind: 'refused'; readonly failure: TargetFailure }

/** Login of users at one target. */
export type TargetLogin = {
  readonly target: string
  readonly publicUrl: URL
  readonly links: LoginLinks
  readonly service: LoginService
  /** `refused`: the token that the target has refused. Never rejects. */
  token(caller: Caller | undefined, refused: string | undefined): Promise<CallToken>
  /** Address at which the user signs in; undefined without a user. */
  link(caller: Caller | undefined): string | undefined
}
