// Sabaki's engine code (npm's @sabaki/gtp) with one engine: node sabaki.js PATH ARGUMENTS INITIAL_COMMANDS
// Sends what Sabaki sends when an engine is attached, without waiting, then its initial commands, two moves, an analysis
// as Sabaki reads it, and prints the replies as one line of JSON.
const {Controller} = require("@sabaki/gtp");
const [path, words, initial] = process.argv.slice(2);
const engine = new Controller(path, words.split(" "));
const send = (line, onLine) => {
    const [name, ...args] = line.split(" ");
    return engine.sendCommand({name, args}, onLine);
};

async function main() {
    engine.start();
    const first = ["name", "version", "protocol_version", "list_commands", "komi 6.5", "boardsize 9", "clear_board"];
    const replies = await Promise.all(first.map((line) => send(line)));
    for (const line of [...initial.split("; "), "genmove B", "play W C3", "genmove B", "undo"]) replies.push(await send(line));
    const updates = [];
    const analysis = send("kata-analyze W 10", ({line}) => {
        updates.push(line);
        if (updates.length === 3) send("name"); // Any command ends it.
    });
    await analysis;
    await engine.stop(3000);
    console.log(JSON.stringify({replies: replies.map(({error, content}) => [error, content]), updates}));
}

main();
