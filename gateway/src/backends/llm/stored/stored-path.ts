/** Calls of one stored response, by the path behind its id. */
export type StoredAction = '' | '/cancel' | '/input_items'

/** The id of a response and the call of a path behind `/responses/`. */
export function storedAt(rest: string): { id: string; action: StoredAction } | undefined {
  const [, id, action = ''] = /^(resp_[\w-]+)(\/cancel|\/input_items)?$/.exec(rest) ?? []
  if (id === undefined || !isAction(action)) return undefined
  return { id, action }
}

function isAction(text: string): text is StoredAction {
  return text === '' || text === '/cancel' || text === '/input_items'
}

/** Methods of each call. */
export const storedMethods: Readonly<Record<StoredAction, readonly string[]>> = {
  '': ['GET', 'DELETE'],
  '/cancel': ['POST'],
  '/input_items': ['GET'],
}
