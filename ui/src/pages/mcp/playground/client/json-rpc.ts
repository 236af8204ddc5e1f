import { isObject } from '../../../../schema-form/model/value.ts'

/** JSON-RPC messages of MCP, as far as a client reads them. */
export type RequestId = string | number

export type RpcRequest = {
  readonly kind: 'request'
  readonly id: RequestId
  readonly method: string
  readonly params: Readonly<Record<string, unknown>>
}
export type RpcNotification = {
  readonly kind: 'notification'
  readonly method: string
  readonly params: Readonly<Record<string, unknown>>
}
export type RpcResponse =
  | { readonly kind: 'result'; readonly id: RequestId; readonly result: Readonly<Record<string, unknown>> }
  | { readonly kind: 'error'; readonly id: RequestId | undefined; readonly error: RpcFailure }

export type RpcMessage = RpcRequest | RpcNotification | RpcResponse

export type RpcFailure = { readonly code: number; readonly message: string; readonly data?: unknown }

/** Error reply of a server. */
export class RpcError extends Error {
  readonly code: number
  readonly data: unknown

  constructor({ code, message, data }: RpcFailure) {
    super(message)
    this.name = 'RpcError'
    this.code = code
    this.data = data
  }
}

/** Reads a message or a batch; what is no message is skipped. */
export function readMessages(value: unknown): readonly RpcMessage[] {
  const values: readonly unknown[] = Array.isArray(value) ? value : [value]
  return values.flatMap((one) => readMessage(one) ?? [])
}

function readMessage(value: unknown): RpcMessage | undefined {
  if (!isObject(value)) return undefined
  const { id, method, params, result, error } = value
  const members = isObject(params) ? params : {}
  if (typeof method === 'string')
    return isId(id)
      ? { kind: 'request', id, method, params: members }
      : { kind: 'notification', method, params: members }
  if (isObject(error)) return { kind: 'error', id: isId(id) ? id : undefined, error: failureOf(error) }
  return isId(id) && isObject(result) ? { kind: 'result', id, result } : undefined
}

function failureOf({ code, message, data }: Readonly<Record<string, unknown>>): RpcFailure {
  return {
    code: typeof code === 'number' ? code : 0,
    message: typeof message === 'string' ? message : 'The server responded with an error.',
    ...(data !== undefined && { data }),
  }
}

function isId(value: unknown): value is RequestId {
  return typeof value === 'string' || typeof value === 'number'
}
