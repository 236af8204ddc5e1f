import type { Path } from '../../../../schema/path.ts'
import { bytesOf } from '../../../own-kinds/byte-size.ts'
import { fileValue } from '../../../own-kinds/enumerations.ts'
import type { Buffer } from '../../../own-kinds/gateway-policy/buffer.ts'
import { type FieldKind, fieldOf, type Mistake } from './field.ts'

const path: Path = ['traffic', 'buffer']

/** `traffic.buffer`. */
export const bufferField: FieldKind = {
  path: 'traffic.buffer',
  traffic: ['http', 'llm', 'mcp'],
  levels: 'mostSpecific',
  translate({ traffic }) {
    const written = traffic?.buffer
    if (written === undefined) return undefined
    const { request, response } = written
    const buffer = {
      ...(request && { request: bodyOf(request) }),
      ...(response && { response: bodyOf(response) }),
    }
    const mistakes = [...sizeMistakes(request, 'request'), ...sizeMistakes(response, 'response')]
    return { ...fieldOf({ buffer }, { place: ['buffer'], path }), mistakes }
  },
}

type Body = NonNullable<Buffer['request']>

function bodyOf({ maxBytes, failureMode }: Body) {
  const bytes = maxBytes === undefined ? undefined : bytesOf(maxBytes)
  return {
    ...(bytes !== undefined && { maxBytes: bytes }),
    ...(failureMode && { failureMode: fileValue(failureMode) }),
  }
}

function sizeMistakes({ maxBytes }: Body = {}, phase: keyof Buffer): Mistake[] {
  if (maxBytes === undefined || bytesOf(maxBytes) !== undefined) return []
  return [{ path: [...path, phase, 'maxBytes'], message: 'must be a size in bytes, such as 64Ki' }]
}
