import { type BodyMode, bodyModes, type Direction, type ModeOverride } from '../wire/messages.ts'

/** Parts of a request that are sent to the processor. */
export type Modes = {
  readonly requestHeaders: boolean
  readonly responseHeaders: boolean
  readonly requestBody: BodyMode
  readonly responseBody: BodyMode
  readonly requestTrailers: boolean
  readonly responseTrailers: boolean
}

/** Modes of one direction. */
export type DirectionModes = {
  readonly headers: boolean
  readonly body: BodyMode
  readonly trailers: boolean
}

export function modesOf(modes: Modes, direction: Direction): DirectionModes {
  return direction === 'request'
    ? { headers: modes.requestHeaders, body: modes.requestBody, trailers: modes.requestTrailers }
    : { headers: modes.responseHeaders, body: modes.responseBody, trailers: modes.responseTrailers }
}

/** Whether any part of a direction is sent. */
export function isProcessed(modes: Modes, direction: Direction): boolean {
  const { headers, body, trailers } = modesOf(modes, direction)
  return headers || body !== 'none' || trailers
}

/** In full duplex, trailers end the body: they are sent in both directions. */
export function withDuplexTrailers(modes: Modes): Modes {
  const isDuplex = isFullDuplex(modes.requestBody) || isFullDuplex(modes.responseBody)
  return isDuplex ? { ...modes, requestTrailers: true, responseTrailers: true } : modes
}

function isFullDuplex(mode: BodyMode): boolean {
  return mode === 'fullDuplexStreamed'
}

/**
 * The modes after the headers of a direction. An override does not end a full duplex stream, nor change the
 * request after its end.
 */
export function overrideModes(modes: Modes, override: ModeOverride, after: Direction): Modes {
  const isRequest = after === 'request'
  return withDuplexTrailers({
    requestHeaders: modes.requestHeaders,
    responseHeaders: isRequest
      ? sends(override.responseHeaders, modes.responseHeaders)
      : modes.responseHeaders,
    requestBody: isRequest ? bodyMode(override.requestBody, modes.requestBody) : modes.requestBody,
    responseBody: bodyMode(override.responseBody, modes.responseBody),
    requestTrailers: isRequest
      ? sends(override.requestTrailers, modes.requestTrailers)
      : modes.requestTrailers,
    responseTrailers: sends(override.responseTrailers, modes.responseTrailers),
  })
}

/** 1 sends, 2 skips. */
function sends(number: number, current: boolean): boolean {
  return number === 1 || (number !== 2 && current)
}

function bodyMode(number: number, current: BodyMode): BodyMode {
  return isFullDuplex(current) ? current : (bodyModes[number] ?? current)
}
