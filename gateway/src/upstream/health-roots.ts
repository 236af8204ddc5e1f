/** Variables of `health.unhealthyExpression`. */
export const healthRoots: ReadonlySet<string> = new Set(['request', 'source', 'jwt', 'response'])
