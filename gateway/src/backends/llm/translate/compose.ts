import type { StreamTranslator, Translation } from './translate.ts'

/** The translation from the client's API of `outer` to the upstream's API of `inner`. */
export function composeTranslations(outer: Translation, inner: Translation): Translation {
  return {
    upstream: inner.upstream,
    request(body) {
      const between = outer.request(body)
      if (between.kind === 'unsupported') return between
      const translated = inner.request(between.body)
      if (translated.kind === 'unsupported' || between.settings === undefined) return translated
      return { ...translated, settings: between.settings }
    },
    reply: (body, context) => outer.reply(inner.reply(body, context), context),
    error: (status, body) => outer.error(status, JSON.stringify(inner.error(status, body))),
    stream(context) {
      // Usage is a chunk of its own in chat, and part of the last event of the client's API.
      return composeStreams(outer.stream(context), inner.stream({ ...context, includeUsage: true }))
    },
  }
}

function composeStreams(outer: StreamTranslator, inner: StreamTranslator): StreamTranslator {
  return {
    get state() {
      return outer.state === 'failed' ? 'failed' : inner.state
    },
    event(event) {
      const between = inner.event(event)
      const [only] = between
      if (only !== undefined && between.length === 1) return outer.event(only)
      return between.flatMap((each) => outer.event(each))
    },
    end() {
      const between = inner.end().flatMap((event) => outer.event(event))
      return [...between, ...outer.end()]
    },
  }
}

/** The translation with signed thinking in `reasoning_details` of chat completions. */
export function withSignedThinking(translation: Translation): Translation {
  return {
    ...translation,
    reply: (body, context) => translation.reply(body, { ...context, signedThinking: true }),
    stream: (context) => translation.stream({ ...context, signedThinking: true }),
  }
}
