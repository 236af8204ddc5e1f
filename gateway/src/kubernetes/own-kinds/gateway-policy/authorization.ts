import { cel, exactlyOne, list, optional, type Schema } from '../../../schema/dsl.ts'
import { clusterEnumeration } from '../enumerations.ts'

const maxRules = 256

/** Schema of rules of one action, or of several; `rule` is a rule of the file. */
export function authorizationSchema<T>(rule: Schema<T>, doc: string) {
  return exactlyOne(
    {
      matchExpressions: list(
        cel({ doc: 'Boolean CEL expression.', example: 'jwt.sub == "ada"' }),
        { doc: 'Expressions for `action`.' },
        { min: 1, max: maxRules },
      ),
      rules: list(rule, { doc: 'Rules with an action each.' }, { min: 1, max: maxRules }),
    },
    {
      action: optional(
        clusterEnumeration(['allow', 'deny', 'require'], {
          doc: 'Action of `matchExpressions`: `Allow` requires that one of them is true, `Deny` that none is true, `Require` that all are true.',
          default: 'Allow',
        }),
      ),
    },
    { doc },
  )
}
