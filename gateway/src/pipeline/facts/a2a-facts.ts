/** A call of an agent (A2A): `a2a` of expressions. Texts are the client's. Written by `policies/a2a`. */
export type A2aFacts = {
  readonly method?: string
  readonly taskId?: string
  readonly contextId?: string
}
