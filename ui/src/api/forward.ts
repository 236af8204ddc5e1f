import { ApiError, refusalOf } from './client.ts'

export type ForwardCall = {
  readonly method?: 'GET' | 'POST' | 'DELETE'
  /** Header fields of the request to the gateway, credentials included. */
  readonly headers?: Readonly<Record<string, string>>
  readonly accept?: string
  readonly body?: unknown
  readonly signal?: AbortSignal
}

/**
 * Sends a request to a listener of the gateway as any client would, and returns its response, whatever its status.
 * Throws `ApiError` if the admin API refuses to forward, or does not answer.
 */
export async function forward(gateway: string, path: string, call: ForwardCall = {}): Promise<Response> {
  const { method = 'GET', headers = {}, accept, body, signal } = call
  const forwarded = Object.entries(headers).map(([name, value]) => [`x-forward-${name}`, value] as const)
  let response: Response
  try {
    response = await fetch(`/api/forward/${encodeURIComponent(gateway)}${path}`, {
      method,
      credentials: 'same-origin',
      headers: {
        'x-tollgate-console': '1',
        ...Object.fromEntries(forwarded),
        ...(accept === undefined ? {} : { accept }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    })
  } catch (error) {
    if (signal?.aborted) throw error
    throw new ApiError('The gateway does not answer. Check that it runs and is reachable.', 0)
  }
  if (!response.ok && !response.headers.has('x-tollgate-forwarded')) throw await refusalOf(response)
  return response
}
