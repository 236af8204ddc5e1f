"""Answers chat completions with what a Python server reads. Arguments: `wsgi` or `aiohttp`. Prints its port."""

import json
import sys


def textsOf(messages):
    texts = []
    for message in messages:
        content = message.get("content")
        if isinstance(content, str):
            texts.append(content)
        else:
            texts.extend(part.get("text", "") for part in content or [])
    return texts


def completion(body):
    record = {
        "model": body.get("model", ""),
        "max_tokens": body.get("max_tokens", 0),
        "texts": textsOf(body.get("messages", [])),
    }
    message = {"role": "assistant", "content": json.dumps(record)}
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


def serve_wsgi():
    from wsgiref.simple_server import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        def log_message(self, *args):
            pass

    def app(environ, start_response):
        bytes_read = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        answer = json.dumps(completion(json.loads(bytes_read))).encode()
        start_response("200 OK", [("content-type", "application/json"), ("content-length", str(len(answer)))])
        return [answer]

    server = make_server("127.0.0.1", 0, app, handler_class=Quiet)
    print(server.server_port, flush=True)
    server.serve_forever()


def serve_aiohttp():
    import asyncio

    from aiohttp import web

    async def handle(request):
        # The charset of the content type is obeyed.
        return web.json_response(completion(await request.json()))

    async def main():
        app = web.Application()
        app.router.add_post("/{path:.*}", handle)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        print(site._server.sockets[0].getsockname()[1], flush=True)
        await asyncio.Event().wait()

    asyncio.run(main())


if __name__ == "__main__":
    {"wsgi": serve_wsgi, "aiohttp": serve_aiohttp}[sys.argv[1]]()
