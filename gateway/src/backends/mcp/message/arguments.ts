import { exactObject } from '../../../lib/json/exact.ts'
import { type ExactJsonObject, isExactJsonObject, isJsonObject } from '../../../lib/json/json.ts'
import { paramsOf } from './json-rpc.ts'
import type { Message } from './message.ts'

/** Arguments of a tool call with exact integers. */
export function argumentsOf({ text, value }: Message): ExactJsonObject | undefined {
  const given = paramsOf(value)['arguments']
  if (!isJsonObject(given)) return undefined
  const { params } = exactObject({ kind: 'object', text, value })
  const exact = isExactJsonObject(params) ? params['arguments'] : undefined
  return isExactJsonObject(exact) ? exact : given
}
